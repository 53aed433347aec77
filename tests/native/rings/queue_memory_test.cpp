// Where QueueMemory puts things, and what it takes for its own.

#include "driver/native/queues/queue_memory.hpp"

#include <stdexcept>
#include <string>

#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/rings/rings_test.hpp"

namespace bamquery {
namespace {

void refuses(const QueueShape& shape, const std::string& name) {
  std::string message;
  try {
    QueueMemory memory(shape);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.find(name) != std::string::npos);
}

void test_shapes() {
  refuses({.leased_pairs = 0, .shared_pairs = 0}, "number of queue pairs is 0");
  refuses({.leased_pairs = 65534, .shared_pairs = 1}, "number of queue pairs is 65535");
  refuses({.leased_pairs = 0xffffffff, .shared_pairs = 2}, "number of queue pairs");
  refuses({.depth = 1, .slots = 1}, "depth is 1");
  refuses({.depth = 48}, "depth is 48");
  refuses({.depth = 131072}, "depth is 131072");
  refuses({.depth = 64, .slots = 64}, "slots is 64");
  refuses({.depth = 64, .slots = 0}, "slots is 0");
  refuses({.slot_bytes = 256}, "slot_bytes is 256");
  refuses({.slot_bytes = 5000}, "slot_bytes is 5000");
  refuses({.slot_bytes = 2048, .block_bytes = 4096}, "slot_bytes is 2048");
  refuses({.slot_bytes = 4u << 20}, "slot_bytes is 4194304");
  refuses({.block_bytes = 1024}, "block_bytes is 1024");
  refuses({.doorbell_stride = 16}, "doorbell_stride is 16");
}

void test_places() {
  for (const std::uint32_t slot_bytes : {512u, 8192u, 65536u}) {
    const QueueMemory memory({.leased_pairs = 3,
                              .shared_pairs = 2,
                              .depth = 8,
                              .slots = 5,
                              .slot_bytes = slot_bytes,
                              .doorbell_stride = 1});
    const auto offset = [&](const void* place) {
      return static_cast<const std::byte*>(place) - memory.address();
    };
    CHECK(reinterpret_cast<std::uintptr_t>(memory.address()) % 4096 == 0 && memory.size() % 4096 == 0);
    // Queue 1 is the first pair's; a stride of 1 is 8 bytes.
    CHECK(offset(memory.tail_doorbell(0)) == 16 && offset(memory.head_doorbell(0)) == 24);
    CHECK(offset(memory.tail_doorbell(4)) == 80 && offset(memory.head_doorbell(4)) == 88);
    std::ptrdiff_t end = static_cast<std::ptrdiff_t>(memory.doorbells().size());
    for (std::uint32_t pair = 0; pair < 5; ++pair, end += 4096)
      CHECK(offset(memory.submissions(pair)) == end);
    for (std::uint32_t pair = 0; pair < 5; ++pair, end += 4096)
      CHECK(offset(memory.completions(pair)) == end);
    if (slot_bytes == 65536) end += 4096;  // 25 lists of 128 bytes.
    CHECK(memory.landing_at(reinterpret_cast<std::uint64_t>(memory.address() + end), 1) ==
          memory.address() + end);
  }
}

void test_bus_addresses() {
  Rings rings({.leased_pairs = 1, .shared_pairs = 1, .depth = 4, .slots = 3, .slot_bytes = 16384});
  const QueueMemory& memory = rings.memory;
  const std::uint64_t begin = rings.pool.pairs[0].landing_bus;
  const std::uint64_t bytes = 2 * 3 * 16384;
  CHECK(memory.landing_at(begin, bytes) == rings.pool.pairs[0].landing);
  CHECK(memory.landing_at(begin + bytes - 1, 1) != nullptr);
  CHECK(memory.landing_at(begin + bytes, 0) != nullptr);
  CHECK(memory.landing_at(begin, bytes + 1) == nullptr);
  CHECK(memory.landing_at(begin + bytes, 1) == nullptr);
  CHECK(memory.landing_at(begin - 1, 1) == nullptr);
  CHECK(memory.landing_at(begin + 1, ~std::uint64_t{0}) == nullptr);
  CHECK(memory.landing_at(~std::uint64_t{0}, 2) == nullptr);
  CHECK(memory.landing_at(0, 1) == nullptr);

  const std::uint64_t lists = rings.pool.pairs[0].prp_lists_bus;
  for (std::uint64_t slot = 0; slot < 6; ++slot) {
    const std::uint64_t* const list = memory.prp_list_at(lists + 32 * slot, 3);
    CHECK(list != nullptr);
    for (std::uint64_t page = 1; page < 4; ++page)
      CHECK(list[page - 1] == begin + 16384 * slot + 4096 * page);
  }
  CHECK(memory.prp_list_at(lists + 4, 1) == nullptr);
  CHECK(memory.prp_list_at(lists - 8, 1) == nullptr);
  CHECK(memory.prp_list_at(lists + 4088, 1) != nullptr);
  CHECK(memory.prp_list_at(lists + 4088, 2) == nullptr);
  CHECK(memory.prp_list_at(lists + 4096, 1) == nullptr);
  CHECK(memory.prp_list_at(lists, ~std::uint64_t{0}) == nullptr);
}

// A pool is written here as it must lie elsewhere.
void test_pools() {
  const QueueMemory memory({.leased_pairs = 33, .shared_pairs = 2, .depth = 4, .slots = 3});
  std::vector<std::byte> staging(memory.pool_bytes());
  std::byte* const rings = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  std::byte* const place = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 41);
  const QueuePoolView pool = memory.make_pool(staging, rings, place);
  CHECK(pool.leased_count == 33 && pool.shared_count == 2 && pool.flags_bytes == QueueFlags::bytes(4, 3));
  const auto here = [&](const auto* there) {
    const std::ptrdiff_t at = reinterpret_cast<const std::byte*>(there) - place;
    CHECK(at >= 0 && static_cast<std::size_t>(at) < staging.size());
    return reinterpret_cast<decltype(there)>(staging.data() + at);
  };
  CHECK(here(pool.free_pairs)[0] == 0xffffffff && here(pool.free_pairs)[1] == 1);
  CHECK(*here(pool.retired_pairs) == 0);
  for (std::uint32_t pair = 0; pair < 35; ++pair) {
    const QueuePairView& view = here(pool.pairs)[pair];
    CHECK(reinterpret_cast<std::byte*>(view.submissions) - rings ==
          reinterpret_cast<std::byte*>(memory.submissions(pair)) - memory.address());
    CHECK(memory.landing_at(view.landing_bus, 3 * 4096) == memory.address() + (view.landing - rings));
    CHECK(view.id == pair + 1 && (view.flags - place) % 128 == 0);
    CHECK(QueueFlags(const_cast<byte*>(here(view.flags)), 4, 3).free_slots(0) == 7);
  }
  bool refused = false;
  try {
    memory.make_pool(std::span(staging).first(staging.size() - 1), rings, place);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

// Memory of somebody else, in which two look at the same rings.
void test_memory_of_others() {
  const QueueShape shape{.leased_pairs = 1, .shared_pairs = 1, .depth = 4, .slots = 3, .slot_bytes = 16384};
  const QueueMemory own(shape);
  CHECK(QueueMemory::bytes(shape) == own.size());
  std::vector<std::byte> room(own.size() + 2 * 4096);
  std::byte* const page = room.data() + 4096 - reinterpret_cast<std::uintptr_t>(room.data()) % 4096;
  const std::span<std::byte> memory(page, own.size());
  const QueueMemory one(shape, memory, {.bus = 0x10000});
  const QueueMemory other(shape, memory, {.bus = 0x10000});
  CHECK(one.address() == page && one.landing().data() == page + (own.landing().data() - own.address()));
  CHECK(one.tail_doorbell(1) == other.tail_doorbell(1) && one.completions(0) == other.completions(0));
  CHECK(one.prp_list_at(one.bus(one.prp_lists().data()), 3)[0] == other.bus(other.landing().data()) + 4096);
  for (const std::span<std::byte>& wrong : {memory.first(own.size() - 1), std::span(page + 8, own.size())}) {
    bool refused = false;
    try {
      const QueueMemory refuses(shape, wrong);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

// A drive: its own addresses, its own doorbells, queue ids from another number on.
void test_places_of_a_drive() {
  QueueMemory memory({.leased_pairs = 2,
                      .shared_pairs = 1,
                      .depth = 4,
                      .slots = 3,
                      .slot_bytes = 16384,
                      .doorbell_stride = 0});
  alignas(4096) static std::byte registers[4096];
  memory.place({.bus = 0x7000, .doorbells = registers, .first_queue = 5});
  CHECK(memory.bus(memory.address()) == 0x7000);
  CHECK(memory.queue_id(0) == 5 && memory.queue_id(2) == 7);
  CHECK(reinterpret_cast<std::byte*>(memory.tail_doorbell(1)) == registers + 2 * 6 * 4);
  CHECK(reinterpret_cast<std::byte*>(memory.head_doorbell(1)) == registers + 2 * 6 * 4 + 4);

  std::vector<std::byte> staging(memory.pool_bytes());
  const QueuePoolView here = memory.make_pool(staging, memory.address(), staging.data());
  const QueuePairView& pair = here.pairs[1];
  CHECK(pair.id == 6 && pair.tail_doorbell == memory.tail_doorbell(1));
  CHECK(pair.landing_bus == memory.bus(pair.landing));
  CHECK(memory.landing_at(pair.landing_bus, 16384) == pair.landing);
  const std::uint64_t* const list = memory.prp_list_at(pair.prp_lists_bus, 3);
  CHECK(list != nullptr && list[0] == pair.landing_bus + 4096 && list[2] == pair.landing_bus + 3 * 4096);
  // Where another processor sees the registers elsewhere.
  std::byte* const there = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 42);
  memory.make_pool(staging, memory.address(), staging.data(), there);
  CHECK(reinterpret_cast<std::byte*>(pair.head_doorbell) == there + 2 * 6 * 4 + 4);

  // Regions: whole pages, side by side, of all the memory.
  for (const bool writes : {false, true}) {
    const std::byte* end = memory.address();
    for (const QueueRegion& region : memory.regions(writes)) {
      CHECK(region.bytes.data() == end && region.bytes.size() % 4096 == 0 && !region.bytes.empty());
      end = region.bytes.data() + region.bytes.size();
    }
    CHECK(end == memory.address() + memory.size());
    const QueueRegion landing = memory.regions(writes)[3];
    CHECK(landing.bytes.data() == memory.landing().data());
    CHECK(landing.access == (writes ? QueueAccess::kReadsAndWrites : QueueAccess::kWrites));
  }
  for (const QueuePlace& wrong : {QueuePlace{.bus = 0x7001},
                                  {.bus = ~std::uint64_t{4095}},
                                  {.doorbells = registers, .first_queue = 0},
                                  {.doorbells = registers, .first_queue = 65533}}) {
    bool refused = false;
    try {
      memory.place(wrong);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
  CHECK(memory.queue_id(0) == 5);

  // Doorbells in the memory are those of its pairs, whatever their numbers.
  memory.place({.bus = 0x7000, .first_queue = 9, .read_only = true});
  CHECK(memory.queue_id(0) == 9);
  CHECK(reinterpret_cast<std::byte*>(memory.tail_doorbell(0)) == memory.address() + 2 * 4);
  CHECK(memory.make_pool(staging, memory.address(), staging.data()).pairs[0].read_only == 1);
}

}  // namespace

void test_queue_memory() {
  test_shapes();
  test_places();
  test_bus_addresses();
  test_pools();
  test_places_of_a_drive();
  test_memory_of_others();
}

}  // namespace bamquery
