#include "driver/native/nvme/nvme_controller.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

void test_open_and_close() {
  FakeNvme fake({.most_entries = 1000, .stride = 2, .queue_pairs = 20, .bar_bytes = 16384});
  {
    const auto drive = open(fake);
    CHECK(drive->identity().model == "Fake drive" && drive->identity().serial == "SERIAL");
    CHECK(drive->version() == 0x00010400 && drive->name() == "0000:01:00.0");
    const DriveLimits& limits = drive->limits();
    CHECK(limits.queue_depth == 512 && limits.doorbell_stride == 2 && limits.needs_contiguous_queues);
    CHECK(limits.transfer_bytes == 131072 && limits.queue_pairs == 20 && !limits.has_shadow_doorbells);
    CHECK(drive->namespaces().size() == 1 && drive->namespaces()[0].blocks == 8192);
    CHECK(drive->statistics().bring_up_seconds > 0 && fake.ready());
  }
  CHECK(!fake.enabled() && fake.shutdowns == 1 && fake.mappings() == 0 && fake.blocked == 0);
}

void test_limits() {
  FakeNvme none({.transfer_shift = 0});
  CHECK(open(none)->limits().transfer_bytes == 2u << 20);  // no limit
  FakeNvme huge({.most_entries = 65536, .transfer_shift = 255});
  CHECK(open(huge)->limits().transfer_bytes == 2u << 20 && open(huge)->limits().queue_depth == 65536);
  // Doorbells of 128 bytes: a BAR of 8 KiB has room for 31 pairs besides the admin queue's.
  FakeNvme small({.stride = 4, .queue_pairs = 60, .bar_bytes = 8192});
  CHECK(open(small)->limits().queue_pairs == 31);
  FakeNvme tiny({.most_entries = 1});
  CHECK(says(error_of([&] { open(tiny); }), "one entry only"));
  FakeNvme cramped({.ranges = {{0x1000, 0x2fff}}});
  CHECK(says(error_of([&] { open(cramped); }), "no addresses are left"));
}

void test_namespaces() {
  FakeNvme fake({.namespaces = {{.block_bytes = 512},
                                {.block_bytes = 4096, .blocks = 100},
                                {.metadata = 8},
                                {.blocks = 0},
                                {.block_bytes = 1024},
                                {.protection = 2},
                                {.write_protected = true}}});
  const auto drive = open(fake);
  const auto& found = drive->namespaces();
  CHECK(found.size() == 7);
  const char* const reasons[] = {"", "", "metadata", "no blocks", "1024 bytes", "protection", ""};
  for (std::size_t i = 0; i < 7; ++i)
    CHECK(reasons[i][0] == 0 ? found[i].refusal.empty() : says(found[i].refusal, reasons[i]));
  QueueMemory memory({.doorbell_stride = 0});
  const NvmeController controller(drive, memory);
  CHECK(controller.shape_of(1)->name == "0000:01:00.0/1" && controller.shape_of(1)->writable);
  CHECK(controller.shape_of(1)->bytes == 8192 * 512 && controller.shape_of(1)->volatile_cache);
  CHECK(!controller.shape_of(7)->writable);  // protected
  for (const std::uint32_t nsid : {0, 2, 3, 4, 5, 6, 8})
    CHECK(!controller.shape_of(nsid));  // 2 has other LBAs

  FakeNvme old({.namespace_lists = false, .namespaces = {{}, {.block_bytes = 4096}}});
  CHECK(open(old)->namespaces().size() == 2);
}

// A former owner was killed: the controller is ready, with rings in memory that is not ours.
void test_taken_over() {
  for (const bool stays : {false, true}) {
    FakeNvme fake;
    fake.leave_running();
    fake.faults.stays_ready = stays;
    const auto drive = open(fake);
    CHECK(drive->namespaces().size() == 1 && fake.resets == (stays ? 1 : 0));
  }
}

void test_events() {
  FakeNvme fake;
  const auto drive = open(fake);
  CHECK(!drive->statistics().last_event && fake.awaited_events == 1);
  for (std::uint64_t count = 1; count <= 3; ++count) {
    fake.report(0x00020101);  // health: temperature; log page 2
    while (drive->statistics().admin.events < count) {
    }
    const auto event = drive->statistics().last_event;
    CHECK(event->type == 1 && event->information == 1 && event->log_page == 2);
    while (fake.awaited_events != count + 1) {
    }
  }
  CHECK(drive->statistics().admin.strays == 0);
}

void test_queue_numbers() {
  FakeNvme fake({.queue_pairs = 5});
  const auto drive = open(fake);
  CHECK(drive->take_queues(3) == 1 && drive->take_queues(2) == 4);
  CHECK(says(error_of([&] { drive->take_queues(1); }), "has 5, of which 5 are in use"));
  drive->give_back_queues(2, 2);
  CHECK(drive->take_queues(2) == 2);
  // A number that is in use is refused by the drive.
  DmaPages rings(drive->memory(), 8192, QueueAccess::kReadsAndWrites);
  drive->create_queues(1, 8, rings.iova(), rings.iova() + 4096);
  CHECK((status_of([&] { drive->create_queues(1, 8, rings.iova(), rings.iova() + 4096); }) == Status{0x101}));
  CHECK(drive->delete_queues(1, Deadline::in(kLong)) && drive->delete_queues(1, Deadline::in(kLong)));
}

}  // namespace

void test_life() {
  test_open_and_close();
  test_limits();
  test_namespaces();
  test_taken_over();
  test_events();
  test_queue_numbers();
}

}  // namespace bamquery::test
