#include <random>
#include <stdexcept>
#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

// Whatever a drive says of itself, opening it ends, and what is left can be used.
void fuzz_identify(std::uint32_t seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    FakeNvme fake({.namespaces = {{}, {.block_bytes = 4096}}}, seed);
    const bool all = round % 4 == 0;
    fake.change_identify = [&](std::uint8_t, std::span<std::byte> page) {
      const std::size_t changes = all ? page.size() : random() % 24;
      // The first bytes, where most of what is looked at lies, are hit more often.
      for (std::size_t i = 0; i < changes; ++i) {
        page[random() % (random() % 2 == 0 ? page.size() : 600)] = static_cast<std::byte>(random());
      }
    };
    try {
      const auto drive = open(fake);
      CHECK(drive->namespaces().size() <= 1024);
      QueueMemory memory({.slot_bytes = 512, .doorbell_stride = 0});
      NvmeController controller(drive, memory);
      CpuQueueClient client(memory, controller);
      std::vector<std::byte> data(512);
      for (const std::uint32_t nsid : {1, 2}) {
        if (controller.shape_of(nsid))
          status_of([&] { client.read(nsid, 0, data, Deadline::in(kLong), {}); });
      }
    } catch (const StorageError&) {
    } catch (const std::invalid_argument&) {
    }
  }
}

void fuzz_admin_completions(std::uint32_t seed) {
  for (std::uint32_t round = 0; round < 6; ++round) {
    FakeNvme fake({}, seed + round);
    fake.faults.fuzz_admin = true;
    const std::uint64_t begin = now_ns();
    error_of([&] { open(fake, true, 5 * kMillisecond); });
    CHECK(now_ns() - begin < kLong);
    fake.faults.fuzz_admin = false;
    open(fake);
  }
}

void fuzz_completions(std::uint32_t seed) {
  std::uint32_t failed = 0;
  for (std::uint32_t round = 0; round < 12; ++round) {
    FakeNvme fake({.shadow_doorbells = round % 2 == 0}, seed + round);
    const auto drive = open(fake);
    QueueMemory memory({.shared_pairs = 0, .depth = 16, .slots = 15, .doorbell_stride = 0});
    NvmeController controller(drive, memory);
    std::vector<std::byte> data(64 * 4096);
    for (int again = 0; again < 3; ++again) {
      fake.faults.fuzz_io = true;
      {
        CpuQueueClient client(memory, controller);
        const Status status =
            status_of([&] { client.read(1, 0, data, Deadline::in(30 * kMillisecond), {}); });
        if (!status.ok()) ++failed;
      }
      fake.faults.fuzz_io = false;
      CHECK(controller.stop(Deadline::in(kLong)));
      controller.recreate_queues();
    }
    CpuQueueClient client(memory, controller);
    client.read(1, 0, data, Deadline::in(kLong), {});
  }
  CHECK(failed != 0);
}

}  // namespace

void test_fuzz(std::uint32_t seed) {
  fuzz_identify(seed);
  fuzz_admin_completions(seed);
  fuzz_completions(seed);
}

}  // namespace bamquery::test
