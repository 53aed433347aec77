// Leases of queue pairs: never two lessees of one pair, nothing left behind, broken pairs kept away.

#include "driver/core/queues/queue_pool.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/rings/rings_test.hpp"

namespace bamquery {
namespace {

QueueShape shape(std::uint32_t leased, std::uint32_t shared, std::uint32_t depth) {
  return {
      .leased_pairs = leased, .shared_pairs = shared, .depth = depth, .slots = depth - 1, .slot_bytes = 512};
}

// A block's memory for flags.
struct Flags {
  explicit Flags(const QueuePoolView& pool) : words((pool.flags_bytes + 15) / 16) {}
  byte* data() { return reinterpret_cast<byte*>(words.data()); }

  struct alignas(16) Word {
    byte bytes[16];
  };
  std::vector<Word> words;
};

void check_read(const QueuePair<Scope::kBlock>& pair, std::uint32_t slot, std::uint64_t lba) {
  CHECK(pair.issue(slot, read(lba)).ok());
  CHECK(pair.wait(slot, later()).ok());
  std::uint64_t word;
  std::memcpy(&word, pair.landing(slot), sizeof word);
  CHECK(word == block_word(lba, 0));
}

// More lessees than pairs; each has its pair alone, and finds all slots free.
void test_turns(std::uint32_t leased, std::uint32_t depth) {
  Rings rings(shape(leased, 0, depth));
  RingController controller(rings.memory);
  controller.start();
  std::vector<std::atomic<std::uint32_t>> lessees(leased);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Flags flags(rings.pool);
      Random random(t);
      for (std::uint32_t turn = 0; turn < 40; ++turn) {
        BlockLease lease(rings.pool, flags.data());
        CHECK(lease.begin(later()).ok());
        const auto pair = lease.pair();
        std::atomic<std::uint32_t>& lessee = lessees[pair.view().id - 1u];
        CHECK(lessee.exchange(1, std::memory_order_relaxed) == 0);
        std::vector<std::uint32_t> slots(depth - 1);
        for (std::uint32_t& slot : slots) CHECK(pair.acquire_slot(kNow, slot).ok());
        check_read(pair, slots[0], 100 * t + turn);
        // Some leave slots behind, and commands that nobody waits for.
        for (const std::uint32_t slot : slots) {
          if (random.below(2) == 0) CHECK(pair.issue(slot, read(slot)).ok());
        }
        lessee.store(0, std::memory_order_relaxed);
        CHECK(lease.end(later()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint32_t all = leased == 32 ? 0xffffffff : (1u << leased) - 1;
  CHECK(rings.pool.free_pairs[0] == all && *rings.pool.retired_pairs == 0);
  for (std::uint32_t i = 0; i < leased; ++i) {
    const QueueHeader header =
        QueuePair<Scope::kDevice>(rings.pool.pairs[i], rings.pool.pairs[i].flags).flags().header();
    CHECK(header.ticket == header.tail && header.tail == header.head && header.missed == 0 &&
          header.late == 0);
  }
}

void test_none_left() {
  Rings rings(shape(33, 0, 2));
  std::vector<Flags> flags(34, Flags(rings.pool));
  std::vector<BlockLease> leases;
  std::vector<std::uint16_t> ids;
  for (Flags& memory : flags) leases.emplace_back(rings.pool, memory.data());
  for (std::size_t i = 0; i < 33; ++i) {
    CHECK(leases[i].begin(kNow).ok());
    ids.push_back(leases[i].pair().view().id);
  }
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < 33; ++i) CHECK(ids[i] == i + 1);
  CHECK(leases[33].begin(kNow) == status::kNoQueuePair);
  CHECK(leases[32].end(kNow).ok());
  CHECK(leases[33].begin(kNow).ok());
}

// A slot in quarantine stays there for later lessees, until its completion comes.
void test_quarantine() {
  Rings rings(shape(1, 0, 4));
  RingController controller(rings.memory);
  Flags first(rings.pool), second(rings.pool);
  std::uint32_t lost, slot;
  {
    BlockLease lease(rings.pool, first.data());
    CHECK(lease.begin(kNow).ok());
    CHECK(lease.pair().acquire_slot(kNow, lost).ok());
    CHECK(lease.pair().issue(lost, read(1)).ok());
    CHECK(lease.end(kNow) == status::kDeadlineMissed);
  }
  for (int turn = 0; turn < 2; ++turn) {
    BlockLease lease(rings.pool, second.data());
    CHECK(lease.begin(kNow).ok());
    const auto pair = lease.pair();
    for (int i = 0; i < 2; ++i) CHECK(pair.acquire_slot(kNow, slot).ok() && slot != lost);
    CHECK(pair.acquire_slot(kNow, slot) == status::kNoSlot);
    if (turn == 1) {
      controller.post(0, controller.held(0)[0], status::kSuccess);
      CHECK(pair.acquire_slot(kNow, slot).ok() && slot == lost);
      CHECK(pair.flags().header().late == 1);
    }
    CHECK(lease.end(kNow).ok());
  }
}

void test_broken_lease() {
  Rings rings(shape(2, 0, 4));
  RingController controller(rings.memory);
  Flags flags(rings.pool);
  for (int turn = 0; turn < 2; ++turn) {
    BlockLease lease(rings.pool, flags.data());
    CHECK(lease.begin(kNow).ok());
    const auto pair = lease.pair();
    std::uint32_t slot;
    CHECK(pair.acquire_slot(kNow, slot).ok());
    CHECK(pair.issue(slot, read(1)).ok());
    const std::uint32_t number = pair.view().id - 1u;
    controller.post(number, controller.held(number)[0], status::kSuccess, 1);
    CHECK(lease.end(later()) == status::kQueueBroken);
  }
  BlockLease lease(rings.pool, flags.data());
  CHECK(lease.begin(later()) == status::kQueueBroken);
}

void test_shared() {
  const Rings rings(shape(2, 3, 4));
  for (std::uint32_t hint = 0; hint < 9; ++hint)
    CHECK(shared_pair(rings.pool, hint).view().id == 3 + hint % 3);
}

}  // namespace

void test_queue_pool() {
  test_turns(1, 2);
  test_turns(3, 4);
  test_turns(2, 64);
  test_none_left();
  test_quarantine();
  test_broken_lease();
  test_shared();
}

}  // namespace bamquery
