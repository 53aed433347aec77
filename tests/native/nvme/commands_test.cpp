#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

const FakeOptions kTwoSizes = {
    .shadow_doorbells = true,
    .namespaces = {{.block_bytes = 512, .blocks = 4096}, {.block_bytes = 4096, .blocks = 512}}};

std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> made(size);
  for (std::byte& each : made) each = static_cast<std::byte>(random());
  return made;
}

void test_shape(DoorbellKind kind, std::uint32_t block_bytes, std::uint32_t depth, std::uint32_t slot_bytes) {
  FakeNvme fake(kTwoSizes);
  const std::uint32_t nsid = block_bytes == 512 ? 1 : 2;
  std::vector<std::byte>& contents = fake.contents[nsid - 1];
  contents = random_bytes(contents.size(), depth);
  const auto drive = open(fake);
  const QueueShape shape{.leased_pairs = 2,
                         .shared_pairs = 0,
                         .depth = depth,
                         .slots = depth - 1,
                         .slot_bytes = slot_bytes,
                         .block_bytes = block_bytes,
                         .doorbell_stride = 0};
  QueueMemory memory(shape);
  NvmeController controller(drive, memory, kind);
  CHECK(controller.doorbell_kind() == kind &&
        controller.doorbell_writes().has_value() == (kind != DoorbellKind::kRegisters));
  CpuQueueClient client(memory, controller);
  const Deadline deadline = Deadline::in(kLong);
  std::vector<std::byte> data(contents.size() / 2 + block_bytes);
  client.read(nsid, 3, data, deadline, {});
  CHECK(std::memcmp(data.data(), contents.data() + 3 * block_bytes, data.size()) == 0);
  const std::vector<std::byte> fresh = random_bytes(data.size() - block_bytes, depth + 1);
  client.write(nsid, 5, fresh, deadline, {});
  client.flush(nsid, deadline, {});
  CHECK(std::memcmp(fresh.data(), contents.data() + 5 * block_bytes, fresh.size()) == 0);
  client.read(nsid, 4, data, deadline, {});
  CHECK(std::memcmp(data.data(), contents.data() + 4 * block_bytes, data.size()) == 0);
  CHECK(fake.blocked == 0);
}

void test_statuses() {
  FakeNvme fake({.namespaces = {{}, {.write_protected = true}}});
  const auto drive = open(fake);
  QueueMemory memory({.doorbell_stride = 0});
  NvmeController controller(drive, memory);
  CpuQueueClient client(memory, controller);
  std::vector<std::byte> data(1024);
  const Deadline deadline = Deadline::in(kLong);
  const auto read = [&](std::uint32_t nsid, std::uint64_t lba) {
    return status_of([&] { client.read(nsid, lba, data, deadline, {}); });
  };
  CHECK(read(1, 8190).ok() && read(1, 8191) == status::kLbaOutOfRange &&
        read(9, 0) == status::kInvalidNamespace);
  CHECK((status_of([&] { client.write(2, 0, data, deadline, {}); }) == Status{0x020}));
  const std::string text = error_of([&] { client.write(2, 0, data, deadline, {}); });
  CHECK(says(text, "write protected"));
  CHECK(client.settle().quarantined == 0);
}

// Neither the queue pair nor the IOMMU lets a drive be written to that was opened for reading.
void test_read_only() {
  for (const DoorbellKind kind :
       {DoorbellKind::kRegisters, DoorbellKind::kShadow, DoorbellKind::kForwarded}) {
    FakeNvme fake(kTwoSizes);
    const auto drive = open(fake, false);
    QueueMemory memory({.doorbell_stride = 0});
    NvmeController controller(drive, memory, kind);
    CHECK(!controller.shape_of(1)->writable);
    CpuQueueClient client(memory, controller);
    std::vector<std::byte> data(1024);
    const Deadline deadline = Deadline::in(kLong);
    CHECK(status_of([&] { client.write(1, 0, data, deadline, {}); }) == status::kReadOnly);
    client.read(1, 0, data, deadline, {});
    client.flush(1, deadline, {});
    CHECK(fake.writes == 0 && fake.blocked == 0 && client.settle().quarantined == 0);
  }
  // Past the queue pair's back: the landing buffers cannot be read by the drive.
  FakeNvme fake(kTwoSizes);
  const auto drive = open(fake, false);
  QueueMemory memory({.doorbell_stride = 0});
  NvmeController controller(drive, memory, DoorbellKind::kRegisters);
  SubmissionEntry entry{};
  entry.opcode = 1;
  entry.nsid = 1;
  entry.prp1 = memory.bus(memory.landing().data());
  memory.landing()[0] = std::byte{0x55};
  memory.submissions(0)[0] = entry;
  AtomicRef<std::uint32_t, Scope::kSystem>(*memory.tail_doorbell(0)).store(1, kRelease);
  while (fake.writes == 0) {
  }
  CHECK(controller.stop(Deadline::in(kLong)));
  CHECK(fake.blocked == 1 && fake.contents[0][0] == std::byte{0});
}

// Namespaces of both LBA sizes through one drive, by queue pairs of their own.
void test_shared_drive(DoorbellKind kind) {
  FakeNvme fake(kTwoSizes);
  const auto drive = open(fake);
  QueueMemory small({.doorbell_stride = 0}), large({.block_bytes = 4096, .doorbell_stride = 0});
  NvmeController first(drive, small, kind);
  CpuQueueClient one(small, first);
  {
    NvmeController second(drive, large, kind);
    CHECK(first.first_queue() == 1 && second.first_queue() == 3);
    CpuQueueClient other(large, second);
    const Deadline deadline = Deadline::in(kLong);
    const std::vector<std::byte> data = random_bytes(65536, 3);
    one.write(1, 0, data, deadline, {});
    other.write(2, 8, data, deadline, {});
    CHECK(std::memcmp(fake.contents[0].data(), data.data(), data.size()) == 0);
    CHECK(std::memcmp(fake.contents[1].data() + 8 * 4096, data.data(), data.size()) == 0);
    CHECK(first.shape_of(1) && !first.shape_of(2) && second.shape_of(2) && !second.shape_of(1));
  }
  // Its numbers are free again, and the other's queue pairs are there.
  QueueMemory again({.doorbell_stride = 0});
  const NvmeController third(drive, again, kind);
  CHECK(third.first_queue() == 3);
  std::vector<std::byte> data(4096);
  one.read(1, 0, data, Deadline::in(kLong), {});
}

void test_refused_shapes() {
  FakeNvme fake({.stride = 1});
  const auto drive = open(fake);
  const std::size_t before = fake.mappings();
  const auto refusal = [&](const QueueShape& shape, DoorbellKind kind) {
    QueueMemory memory(shape);
    try {
      NvmeController(drive, memory, kind);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  constexpr DoorbellKind kAny = DoorbellKind::kAutomatic;
  CHECK(says(refusal({.depth = 512, .slots = 511, .doorbell_stride = 1}, kAny), "256 entries, not 512"));
  CHECK(says(refusal({.slot_bytes = 262144, .doorbell_stride = 1}, kAny), "131072 bytes (MDTS)"));
  CHECK(says(refusal({.block_bytes = 4096, .doorbell_stride = 1}, kAny), "namespace 1: 512 bytes"));
  CHECK(says(refusal({.doorbell_stride = 4}, DoorbellKind::kRegisters), "stride 1 (CAP.DSTRD), not 4"));
  CHECK(says(refusal({.doorbell_stride = 1}, DoorbellKind::kShadow), "OACS bit 8"));
  CHECK(refusal({.doorbell_stride = 4}, kAny).empty());  // forwarded
  QueueMemory many({.leased_pairs = 16, .doorbell_stride = 1});
  CHECK(says(error_of([&] { NvmeController(drive, many); }), "17 queue pairs are wanted; the drive has 16"));
  CHECK(fake.mappings() == before);
}

}  // namespace

void test_commands() {
  for (const DoorbellKind kind :
       {DoorbellKind::kRegisters, DoorbellKind::kShadow, DoorbellKind::kForwarded}) {
    test_shape(kind, 512, 2, 512);
    test_shape(kind, 512, 4, 8192);
    test_shape(kind, 512, 64, 131072);
    test_shape(kind, 4096, 256, 4096);
    test_shape(kind, 4096, 16, 65536);
    test_shared_drive(kind);
  }
  test_statuses();
  test_read_only();
  test_refused_shapes();
}

}  // namespace bamquery::test
