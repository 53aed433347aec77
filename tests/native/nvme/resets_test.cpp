#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

constexpr std::byte kUntouched{0x77};

// Reads are in flight when the controller stops; what the drive still has of them is let go afterwards.
// Returns whether anything landed.
bool lands_after(FakeNvme& fake, const std::function<bool(NvmeController&)>& stop, bool ends_controller) {
  std::fill(fake.contents[0].begin(), fake.contents[0].end(), std::byte{1});
  const auto drive = open(fake);
  QueueMemory memory({.leased_pairs = 0, .depth = 64, .slots = 63, .doorbell_stride = 0});
  std::ranges::fill(memory.landing(), kUntouched);
  bool stopped = false;
  {
    NvmeController controller(drive, memory);
    std::vector<std::byte> space(memory.pool_bytes() + 128);
    void* at = space.data();
    std::size_t size = space.size();
    std::align(128, memory.pool_bytes(), at, size);
    const QueuePoolView pool = memory.make_pool({static_cast<std::byte*>(at), memory.pool_bytes()});
    const QueuePair<Scope::kDevice> pair = shared_pair(pool, 0);
    fake.faults.mute = true;
    for (std::uint32_t i = 0; i < 60; ++i) {
      std::uint32_t slot = 0;
      CHECK(pair.acquire_slot(Deadline{0}, slot).ok() && pair.issue(slot, {Opcode::kRead, 1, i, 8}).ok());
    }
    while (fake.held != 60) std::this_thread::yield();
    stopped = stop(controller);
    CHECK(!stopped || fake.held == 0);
    if (!ends_controller) {
      fake.release_held();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  fake.release_held();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(stopped);
  return !std::ranges::all_of(memory.landing(), [](std::byte each) { return each == kUntouched; });
}

void test_nothing_lands() {
  const auto by_deletion = [](NvmeController& controller) { return controller.stop(Deadline::in(kLong)); };
  const auto by_reset = [](NvmeController& controller) {
    return controller.drive().reset(Deadline::in(kLong));
  };
  for (const bool ends : {false, true}) {
    FakeNvme first, second;
    CHECK(!lands_after(first, by_deletion, ends) && !lands_after(second, by_reset, ends));
    CHECK(first.blocked == 0 && second.blocked == 0);
  }
  // A drive that does not end commands is found out while its memory is mapped, and stopped by the IOMMU
  // then.
  FakeNvme bad;
  bad.faults.forgets_to_abort = true;
  CHECK(lands_after(bad, by_deletion, false));
  FakeNvme stopped;
  stopped.faults.forgets_to_abort = true;
  CHECK(!lands_after(stopped, by_deletion, true));
  CHECK(stopped.blocked != 0);
}

void test_again_and_again() {
  for (const DoorbellKind kind :
       {DoorbellKind::kRegisters, DoorbellKind::kShadow, DoorbellKind::kForwarded}) {
    FakeNvme fake({.shadow_doorbells = true});
    const auto drive = open(fake);
    QueueMemory memory({.depth = 16, .slots = 15, .doorbell_stride = 0});
    NvmeController controller(drive, memory, kind);
    for (std::uint32_t round = 0; round < 20; ++round) {
      {
        CpuQueueClient client(memory, controller);
        std::vector<std::byte> data(100 * 512, static_cast<std::byte>(round));
        client.write(1, round, data, Deadline::in(kLong), {});
        CHECK(fake.contents[0][(round + 99) * 512] == static_cast<std::byte>(round));
      }
      if (round % 3 == 0) CHECK(drive->reset(Deadline::in(kLong)));
      CHECK(controller.stop(Deadline::in(kLong)) && controller.stop(Deadline::in(kLong)));
      controller.recreate_queues();
    }
    bool refused = false;
    try {
      controller.recreate_queues();
    } catch (const std::logic_error&) {
      refused = true;
    }
    CHECK(refused && drive->statistics().resets == 7);
  }
}

// One controller's trouble ends the other's queue pairs; that one can have them back as well.
void test_two_controllers() {
  FakeNvme fake;
  const auto drive = open(fake);
  QueueMemory mine({.doorbell_stride = 0}), yours({.doorbell_stride = 0});
  NvmeController first(drive, mine), second(drive, yours);
  CHECK(drive->reset(Deadline::in(kLong)));
  CHECK(first.stop(Deadline::in(kLong)));
  first.recreate_queues();
  CHECK(second.stop(Deadline::in(kLong)));
  second.recreate_queues();
  CpuQueueClient one(mine, first), other(yours, second);
  std::vector<std::byte> data(4096);
  one.read(1, 0, data, Deadline::in(kLong), {});
  other.read(1, 0, data, Deadline::in(kLong), {});
}

void test_closed() {
  FakeNvme fake;
  const auto drive = open(fake);
  QueueMemory memory({.doorbell_stride = 0});
  NvmeController controller(drive, memory);
  drive->shut_down(Deadline::in(kLong));
  CHECK(fake.shutdowns == 1 && !fake.enabled() && controller.stop(Deadline::in(kLong)));
  CHECK(says(error_of([&] { controller.recreate_queues(); }), "was shut down"));
}

}  // namespace

void test_resets() {
  test_nothing_lands();
  test_again_and_again();
  test_two_controllers();
  test_closed();
}

}  // namespace bamquery::test
