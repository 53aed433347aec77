#include <thread>
#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

// Every distance round rings of a few sizes, against what the rule means: the value that the controller wants
// to hear of was passed.
void test_rule() {
  for (const std::uint32_t depth : {2u, 4u, 64u}) {
    for (std::uint32_t before = 0; before < depth; ++before) {
      for (std::uint32_t by = 1; by < depth; ++by) {
        const std::uint32_t now = (before + by) % depth;
        for (std::uint32_t event = 0; event < depth; ++event) {
          const bool passed = (event - before) % depth < by;
          // Wrapped, a ring's values are not apart as they are over 16 bits: more is told then, never less.
          CHECK(needs_register(event, before, now) || !passed || now < before);
          if (now > before) CHECK(needs_register(event, before, now) == passed);
          if (event == before) CHECK(needs_register(event, before, now));
        }
      }
    }
  }
}

// A queue pair of 64 places whose commands nobody answers, so that nothing depends on time.
struct Held {
  explicit Held(DoorbellKind kind)
      : fake({.shadow_doorbells = true}),
        drive(open(fake)),
        controller(drive, memory, kind),
        pool_memory(memory.pool_bytes() / 16 + 16),
        pool(memory.make_pool(std::as_writable_bytes(std::span(pool_memory)))) {
    fake.faults.mute = true;
  }

  struct alignas(128) Piece {
    std::byte bytes[128];
  };

  void issue(std::uint32_t count) {
    const QueuePair<Scope::kDevice> pair = shared_pair(pool, 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t slot = 0;
      CHECK(pair.acquire_slot(Deadline{0}, slot).ok());
      CHECK(pair.issue(slot, {Opcode::kRead, 1, i, 1}).ok());
    }
  }

  FakeNvme fake;
  std::shared_ptr<NvmeDrive> drive;
  QueueMemory memory{{.leased_pairs = 0, .depth = 64, .slots = 63, .doorbell_stride = 0}};
  NvmeController controller;
  std::vector<Piece> pool_memory;
  QueuePoolView pool;
};

void test_forwarded() {
  Held held(DoorbellKind::kForwarded);
  held.issue(40);
  CHECK(held.fake.held == 0 && *held.controller.doorbell_writes() == 0);
  CHECK(held.controller.service(0) && !held.controller.service(0));
  while (held.fake.held != 40) std::this_thread::yield();
  CHECK(*held.controller.doorbell_writes() == 1);
  // A few more wait for company, but not for long.
  held.issue(3);
  const std::uint64_t begin = now_ns();
  while (!held.controller.service(0)) std::this_thread::yield();
  CHECK(now_ns() - begin < kLong && *held.controller.doorbell_writes() == 2);
  while (held.fake.held != 43) std::this_thread::yield();
  // A crowd goes at once.
  held.issue(20);
  while (!held.controller.service(0)) std::this_thread::yield();
  while (held.fake.held != 63) std::this_thread::yield();
  CHECK(*held.controller.doorbell_writes() == 3);
  held.fake.release_held();
}

void test_shadow() {
  Held held(DoorbellKind::kShadow);
  held.issue(63);
  CHECK(held.controller.service(0) && *held.controller.doorbell_writes() == 1);
  while (held.fake.held != 63) std::this_thread::yield();
  held.fake.release_held();
}

// With nobody who waits, the thread passes doorbells on, while activity lasts.
void test_thread(DoorbellKind kind) {
  Held held(kind);
  held.issue(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(held.fake.held == 0);
  {
    const auto activity = held.controller.activity();
    while (held.fake.held != 5) std::this_thread::yield();
  }
  held.issue(1);
  held.controller.wake();
  while (held.fake.held != 6) {
    held.controller.wake();
    std::this_thread::yield();
  }
  held.fake.release_held();
}

}  // namespace

void test_doorbells() {
  test_rule();
  test_forwarded();
  test_shadow();
  test_thread(DoorbellKind::kForwarded);
  test_thread(DoorbellKind::kShadow);
}

}  // namespace bamquery::test
