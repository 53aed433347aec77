#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

void test_not_ready() {
  {
    FakeNvme fake;
    fake.faults.never_ready = true;
    CHECK(says(error_of([&] { open(fake); }), "did not become ready within 1 s"));
    fake.faults.never_ready = false;
    open(fake);  // as good as ever
  }
  {
    FakeNvme fake;
    fake.faults.fatal_when_enabled = true;
    CHECK(says(error_of([&] { open(fake); }), "CSTS.CFS"));
    fake.faults.fatal_when_enabled = false;
    open(fake);
  }
  {
    FakeNvme fake;
    fake.leave_running();
    fake.faults.stays_ready = fake.faults.has_no_reset = true;
    CHECK(says(error_of([&] { open(fake); }), "stays ready"));
    fake.faults.stays_ready = false;
  }
  FakeNvme fake;
  fake.pull_out();
  CHECK(says(error_of([&] { open(fake); }), "the drive is gone"));
}

void test_no_answer() {
  FakeNvme fake;
  fake.faults.mute_admin = true;
  std::string what;
  CHECK(status_of([&] {
          try {
            open(fake, true, 20 * kMillisecond);
          } catch (const NvmeError& error) {
            what = error.what();
            throw;
          }
        }) == status::kDeadlineMissed);
  CHECK(says(what, "0000:01:00.0: the drive does not answer") && says(what, "identify"));
  CHECK(fake.mappings() == 0 && !fake.enabled());
}

// An admin queue that is stuck takes no more commands until the drive was reset, and works again then.
void test_stuck_and_reset() {
  FakeNvme fake;
  const auto drive = open(fake, true, 20 * kMillisecond);
  DmaPages rings(drive->memory(), 8192, QueueAccess::kReadsAndWrites);
  const auto create = [&] { drive->create_queues(1, 8, rings.iova(), rings.iova() + 4096); };
  fake.faults.mute_admin = true;
  CHECK(status_of(create) == status::kDeadlineMissed);
  CHECK(status_of(create) == status::kQueueBroken);
  CHECK(drive->statistics().admin.aborts == 1 && drive->statistics().admin.missed == 1);
  fake.faults.mute_admin = false;
  CHECK(status_of(create) == status::kQueueBroken);
  drive->make_ready();
  CHECK(drive->statistics().resets == 1);
  create();
}

// The drive takes commands and does not answer: an error at the deadline, and it can be had back.
void test_commands_unanswered(bool mutes_admin) {
  FakeNvme fake;
  const auto drive = open(fake, true, 50 * kMillisecond);
  QueueMemory memory({.shared_pairs = 0, .depth = 16, .slots = 15, .doorbell_stride = 0});
  NvmeController controller(drive, memory);
  std::vector<std::byte> data(40960);
  {
    CpuQueueClient client(memory, controller);
    fake.faults.mute = true;
    CHECK(status_of([&] { client.read(1, 0, data, Deadline::in(20 * kMillisecond), {}); }) ==
          status::kDeadlineMissed);
    CHECK(client.settle().quarantined != 0);
  }
  fake.faults.mute_admin = mutes_admin;
  CHECK(controller.stop(Deadline::in(kLong)));
  CHECK(drive->statistics().resets == (mutes_admin ? 1 : 0) && fake.held == 0);
  fake.faults.mute = fake.faults.mute_admin = false;
  controller.recreate_queues();
  CpuQueueClient client(memory, controller);
  client.read(1, 0, data, Deadline::in(kLong), {});
  CHECK(client.settle().quarantined == 0);
}

// Neither deletion nor a reset: stop() says so at its deadline, and the drive's end takes its memory away.
void test_hopeless() {
  FakeNvme fake;
  {
    const auto drive = open(fake, true, 20 * kMillisecond);
    QueueMemory memory({.doorbell_stride = 0});
    NvmeController controller(drive, memory);
    fake.faults.mute_admin = fake.faults.stays_ready = fake.faults.has_no_reset = true;
    CHECK(!controller.stop(Deadline::in(100 * kMillisecond)));
    fake.faults.stays_ready = false;
  }
  CHECK(fake.mappings() == 0);
}

void test_pulled_out() {
  FakeNvme fake;
  const auto drive = open(fake);
  QueueMemory memory({.doorbell_stride = 0});
  NvmeController controller(drive, memory);
  fake.pull_out();
  std::vector<std::byte> data(4096);
  {
    CpuQueueClient client(memory, controller);
    CHECK(status_of([&] { client.read(1, 0, data, Deadline::in(20 * kMillisecond), {}); }) ==
          status::kDeadlineMissed);
  }
  const std::uint64_t before = now_ns();
  CHECK(!controller.stop(Deadline::in(200 * kMillisecond)));
  CHECK(now_ns() - before < kLong);
}

}  // namespace

void test_dead_drives() {
  test_not_ready();
  test_no_answer();
  test_stuck_and_reset();
  test_commands_unanswered(false);
  test_commands_unanswered(true);
  test_hopeless();
  test_pulled_out();
}

}  // namespace bamquery::test
