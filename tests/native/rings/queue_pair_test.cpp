// One queue pair: entries, rings going round, statuses, deadlines, quarantine and broken protocol.

#include "driver/core/queues/queue_pair.hpp"

#include <array>
#include <set>
#include <thread>
#include <vector>

#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/rings/rings_test.hpp"

namespace bamquery {
namespace {

using Pair = QueuePair<Scope::kDevice>;

QueueShape one_pair(std::uint32_t depth, std::uint32_t slot_bytes = 512) {
  return {.leased_pairs = 0, .shared_pairs = 1, .depth = depth, .slots = depth - 1, .slot_bytes = slot_bytes};
}

std::uint32_t slot_from(const Pair& pair) {
  std::uint32_t slot = ~0u;
  CHECK(pair.acquire_slot(later(), slot).ok() && slot < pair.view().slots);
  return slot;
}

void check_data(const Pair& pair, std::uint32_t slot, std::uint64_t lba, std::uint32_t blocks) {
  const std::uint32_t block_bytes = pair.view().block_bytes;
  for (std::uint32_t at = 0; at < blocks * block_bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, pair.landing(slot) + at, sizeof word);
    CHECK(word == block_word(lba + at / block_bytes, at % block_bytes));
  }
}

// Byte by byte as the specification's figures have it.
void test_entries() {
  Rings rings(one_pair(4, 16384));
  const Pair pair = shared_pair(rings.pool, 0);
  const std::uint32_t slot = slot_from(pair);
  CHECK(pair.issue(slot, {Opcode::kWrite, 0x01020304, 0x1112131415161718, 17}).ok());
  const auto* const entry = reinterpret_cast<const std::uint8_t*>(rings.memory.submissions(0));
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- != 0;) value = value << 8 | entry[at + i];
    return value;
  };
  CHECK(number(0, 1) == 0x01 && number(1, 1) == 0);
  CHECK(slot_of(static_cast<std::uint16_t>(number(2, 2)), 4) == slot);
  CHECK(number(4, 4) == 0x01020304);
  CHECK(number(8, 8) == 0 && number(16, 8) == 0);
  CHECK(number(24, 8) == reinterpret_cast<std::uint64_t>(pair.landing(slot)));
  CHECK(rings.memory.prp_list_at(number(32, 8), 1)[0] == number(24, 8) + 4096);
  CHECK(number(40, 8) == 0x1112131415161718);
  CHECK(number(48, 4) == 16);
  CHECK(number(52, 4) == 0 && number(56, 8) == 0);

  const std::uint32_t other = slot_from(pair);
  CHECK(pair.issue(other, {Opcode::kFlush, 5, 77, 0}).ok());
  const SubmissionEntry& flush = rings.memory.submissions(0)[1];
  CHECK(flush.opcode == 0 && flush.nsid == 5 && flush.prp1 == 0 && flush.prp2 == 0 && flush.lba == 0);
  CHECK(flush.block_count == 0);
}

// Reads and writes of each size that a slot takes; the controller follows the PRPs.
void test_sizes() {
  for (const std::uint32_t block_bytes : {512u, 4096u}) {
    for (const std::uint32_t slot_bytes : {512u, 4096u, 8192u, 65536u, 2u << 20}) {
      if (slot_bytes < block_bytes) continue;
      QueueShape shape = one_pair(4, slot_bytes);
      shape.block_bytes = block_bytes;
      Rings rings(shape);
      RingController controller(rings.memory);
      const Pair pair = shared_pair(rings.pool, 0);
      const std::uint32_t most = slot_bytes / block_bytes;
      for (const std::uint32_t blocks : {1u, 2u, 7u, 8u, 9u, 16u, 17u, 24u, most - 1, most}) {
        if (blocks < 1 || blocks > most) continue;
        const std::uint32_t slot = slot_from(pair);
        for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {  // Writes what it has read.
          CHECK(pair.issue(slot, {opcode, 1, blocks, blocks}).ok());
          controller.step();
          CHECK(pair.wait(slot, later()).ok());
          check_data(pair, slot, blocks, blocks);
        }
        pair.release_slot(slot);
      }
    }
  }
}

void test_refusals() {
  Rings rings(one_pair(4, 4096));
  const Pair pair = shared_pair(rings.pool, 0);
  const std::uint32_t slot = slot_from(pair);
  const auto refused = [&](const Request& request, Status status) {
    CHECK(pair.issue(slot, request) == status);
    CHECK(pair.wait(slot, later()) == status);
  };
  CHECK(!pair.wait(slot, later()).ok());  // Nothing was issued.
  refused(read(0, 9), status::kTooLarge);
  refused(read(0, 0x80000001), status::kTooLarge);
  refused(read(0, 0), status::kInvalidField);
  refused({Opcode::kFlush, 1, 0, 1}, status::kInvalidField);
  CHECK(*rings.memory.tail_doorbell(0) == 0);
  RingController controller(rings.memory);
  CHECK(pair.issue(slot, read(0, 8)).ok());
  controller.step();
  CHECK(pair.wait(slot, later()).ok());
}

// A pair of a drive that is opened for reading: nothing of a write reaches the ring.
void test_read_only() {
  Rings rings(one_pair(4, 4096));
  rings.memory.place({.read_only = true});
  std::vector<std::byte> staging(rings.memory.pool_bytes() + 128);
  void* at = staging.data();
  std::size_t space = staging.size();
  std::align(128, rings.memory.pool_bytes(), at, space);
  const Pair pair =
      shared_pair(rings.memory.make_pool({static_cast<std::byte*>(at), rings.memory.pool_bytes()}), 0);
  const std::uint32_t slot = slot_from(pair);
  for (const Opcode opcode : {Opcode::kWrite, static_cast<Opcode>(0x08), static_cast<Opcode>(0x09)}) {
    CHECK(pair.issue(slot, {opcode, 1, 0, 1}) == status::kReadOnly);
    CHECK(pair.wait(slot, later()) == status::kReadOnly);
  }
  CHECK(*rings.memory.tail_doorbell(0) == 0);
  RingController controller(rings.memory);
  for (const Request& request : {read(0, 8), Request{Opcode::kFlush, 1, 0, 0}}) {
    CHECK(pair.issue(slot, request).ok());
    controller.step();
    CHECK(pair.wait(slot, later()).ok());
  }
}

// One thread alone keeps all slots busy for some rounds, and no wait needs another thread.
void test_rounds(std::uint32_t depth) {
  Rings rings(one_pair(depth));
  RingController controller(rings.memory, {.error = 100}, depth);
  const Pair pair = shared_pair(rings.pool, 0);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i + 1 < depth; ++i) slots.push_back(slot_from(pair));
  CHECK(std::set(slots.begin(), slots.end()).size() == depth - 1);
  std::uint32_t none;
  CHECK(pair.acquire_slot(kNow, none) == status::kNoSlot);
  std::uint64_t lba = 0, errors = 0;
  std::vector<std::uint64_t> lbas(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    lbas[i] = lba++;
    CHECK(pair.issue(slots[i], read(lbas[i])).ok());
  }
  while (lba < 5 * depth + 103) {
    controller.step();
    pair.sweep();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Status status;
      if (!pair.try_wait(slots[i], status)) continue;
      if (fate_of({.error = 100}, lbas[i]) == Fate::kFailed) {
        CHECK(status == status_of(lbas[i]));
        ++errors;
      } else {
        CHECK(status.ok());
        check_data(pair, slots[i], lbas[i], 1);
      }
      lbas[i] = lba++;
      CHECK(pair.issue(slots[i], read(lbas[i])).ok());
    }
  }
  while (!controller.held(0).empty()) controller.step();
  CHECK(pair.drain(kNow).ok());
  CHECK(pair.flags().header().late == 0 && pair.flags().header().errors >= errors && errors != 0);
}

// Commands issued in silence are told of by one doorbell, or by another lane's.
void test_batches() {
  Rings rings(one_pair(64));
  RingController controller(rings.memory);
  const Pair pair = shared_pair(rings.pool, 0);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < 63; ++i) slots.push_back(slot_from(pair));
  for (std::uint32_t i = 0; i < 63; ++i) CHECK(pair.issue(Silent{}, true, slots[i], read(i)).ok());
  CHECK(*rings.memory.tail_doorbell(0) == 0 && pair.flags().header().doorbells == 0);
  pair.ring_doorbell();
  pair.ring_doorbell();  // There is nothing to tell.
  CHECK(*rings.memory.tail_doorbell(0) == 63 && pair.flags().header().doorbells == 1);
  const auto finish = [&](std::uint32_t slot, std::uint64_t lba) {
    for (Status status; !pair.try_wait(slot, status); pair.sweep()) controller.step();
    check_data(pair, slot, lba, 1);
  };
  for (std::uint32_t i = 0; i < 63; ++i) finish(slots[i], i);
  CHECK(pair.issue(Silent{}, true, slots[0], read(70)).ok());
  CHECK(pair.issue(slots[1], read(71)).ok());
  CHECK(pair.flags().header().doorbells == 2);
  finish(slots[0], 70);
  finish(slots[1], 71);
}

void test_drain() {
  for (const std::uint32_t depth : {2u, 4u, 256u}) {
    Rings rings(one_pair(depth));
    RingController controller(rings.memory);
    const Pair pair = shared_pair(rings.pool, 0);
    std::vector<std::uint32_t> slots;
    for (std::uint32_t i = 0; i + 1 < depth; ++i) {
      slots.push_back(slot_from(pair));
      CHECK(pair.issue(slots.back(), read(i)).ok());
    }
    CHECK(controller.held(0).size() == depth - 1);
    while (!controller.held(0).empty()) controller.step();
    CHECK(pair.drain(later()).ok());
    for (std::uint32_t i = 0; i + 1 < depth; ++i) {
      CHECK(pair.wait(slots[i], kNow).ok());
      check_data(pair, slots[i], i, 1);
    }
    CHECK(pair.issue(slots[0], read(1)).ok());
    CHECK(pair.drain(kNow) == status::kDeadlineMissed);
    CHECK(pair.drain(kNow).ok());
  }
}

// More threads than slots, each command a new slot; somebody's sweep serves all.
void test_many_threads(std::uint32_t depth, std::uint32_t patience) {
  Rings rings(one_pair(depth));
  RingController controller(rings.memory, {.error = 50}, depth);
  controller.start();
  std::atomic<std::uint32_t> errors{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  const std::uint32_t each = depth == 2 ? 100 : 300;
  for (std::uint32_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const Pair pair(rings.pool.pairs[0], rings.pool.pairs[0].flags, patience);
      for (std::uint32_t i = 0; i < each; ++i) {
        const std::uint64_t lba = t * each + i;
        const std::uint32_t slot = slot_from(pair);
        CHECK(pair.issue(slot, read(lba)).ok());
        const Status status = pair.wait(slot, later());
        if (fate_of({.error = 50}, lba) == Fate::kFailed) {
          CHECK(status == status_of(lba));
          errors.fetch_add(1, std::memory_order_relaxed);
        } else {
          CHECK(status.ok());
          check_data(pair, slot, lba, 1);
        }
        pair.release_slot(slot);
      }
    });
  }
  std::thread sweeper([&] {
    const Pair pair = shared_pair(rings.pool, 0);
    while (patience != 0 && !done.load(std::memory_order_relaxed)) {
      pair.sweep();
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done.store(true, std::memory_order_relaxed);
  sweeper.join();
  const QueueHeader& header = shared_pair(rings.pool, 0).flags().header();
  CHECK(header.ticket == first_counter(depth) + 6 * each);
  CHECK(header.tail == header.ticket && header.head == header.ticket &&
        header.submission_head == header.ticket);
  CHECK(header.errors == errors.load() && header.errors != 0 && header.late == 0 && header.missed == 0);
}

void test_deadline() {
  Rings rings(one_pair(4));
  RingController controller(rings.memory);
  const Pair pair = shared_pair(rings.pool, 0);
  const std::uint32_t slot = slot_from(pair);
  CHECK(pair.issue(slot, read(7)).ok());
  CHECK(pair.wait(slot, kNow) == status::kDeadlineMissed);
  // Two more slots are there; the one in quarantine is not given out.
  const std::array others = {slot_from(pair), slot_from(pair)};
  std::uint32_t none;
  CHECK(others[0] != slot && others[1] != slot && pair.acquire_slot(kNow, none) == status::kNoSlot);
  // The others go on, also around the ring.
  for (int round = 0; round < 10; ++round) {
    CHECK(pair.issue(others[0], read(8)).ok());
    CHECK(controller.held(0).size() == 2);
    controller.post(0, controller.held(0).back(), status::kSuccess);
    controller.held(0).pop_back();
    CHECK(pair.wait(others[0], later()).ok());
  }
  CHECK(pair.acquire_slot(kNow, none) == status::kNoSlot);
  // The late completion gives it back.
  controller.post(0, controller.held(0)[0], status::kSuccess);
  CHECK(pair.acquire_slot(kNow, none).ok() && none == slot);
  const QueueHeader& header = pair.flags().header();
  CHECK(header.missed == 1 && header.late == 1 && header.errors == 0 && !pair.broken());
  CHECK(pair.issue(slot, read(9)).ok());
  CHECK(pair.abandon(slot, status::kAbortRequested) == status::kAbortRequested);
}

// Each way to break the protocol ends all waits at once.
void test_broken_pair() {
  struct Way {
    std::uint32_t head;
    std::uint16_t id, queue;
    bool twice;
  };
  for (const Way& way : {Way{1, 0, 0, false}, Way{6, 0, 0, false}, Way{0, 1, 0, false}, Way{0, 7, 0, false},
                         Way{0, 8, 0, false}, Way{0, 0xfff8, 0, false}, Way{0, 0, 1, false},
                         Way{0, 0, 0xffff, false}, Way{0, 0, 0, true}}) {
    Rings rings(one_pair(8));
    RingController controller(rings.memory);
    const Pair pair = shared_pair(rings.pool, 0);
    const std::array slots = {slot_from(pair), slot_from(pair)};
    // Some commands go well.
    for (int i = 0; i < 3; ++i) {
      CHECK(pair.issue(slots[1], read(1)).ok());
      controller.step();
      CHECK(pair.wait(slots[1], later()).ok());
    }
    CHECK(pair.issue(slots[0], read(0)).ok());
    std::thread waiter([&] { CHECK(loses_slot(pair.wait(slots[0], later())) != way.twice); });
    const SubmissionEntry entry = controller.held(0)[0];
    if (way.twice) {
      controller.post(0, entry, status::kSuccess);
      waiter.join();
      CHECK(pair.issue(slots[0], read(0)).ok());  // The same slot, but not the same command.
      controller.held(0);
      controller.post(0, entry, status::kSuccess);
      CHECK(pair.wait(slots[0], later()) == status::kQueueBroken);
    } else {
      controller.post(0, entry, status::kSuccess, way.head, way.id, way.queue);
      waiter.join();
    }
    CHECK(pair.broken());
    std::uint32_t slot;
    CHECK(pair.acquire_slot(later(), slot) == status::kQueueBroken);
    CHECK(pair.issue(slots[1], read(2)) == status::kQueueBroken);
    CHECK(pair.wait(slots[1], later()) == status::kQueueBroken);
    CHECK(pair.sweep() == 0);
  }
}

// What a command ended with stays until its slot's next one, and statuses are whole.
void test_statuses() {
  Rings rings(one_pair(2));
  RingController controller(rings.memory);
  const Pair pair = shared_pair(rings.pool, 0);
  const std::uint32_t slot = slot_from(pair);
  for (std::uint16_t code = 0; code < 0x700; ++code) {
    CHECK(pair.issue(slot, read(code)).ok());
    controller.post(0, controller.held(0).at(0), {code});
    controller.held(0).clear();
    CHECK(pair.wait(slot, later()) == Status{code});
    CHECK(pair.wait(slot, kNow) == Status{code});
  }
}

void test_flags() {
  for (const std::uint32_t depth : {2u, 4u, 64u, 256u, 65536u}) {
    for (const std::uint32_t slots : {1u, depth / 2, depth - 1}) {
      std::vector<std::byte> bytes(QueueFlags::bytes(depth, slots) + 1, std::byte{0x5a});
      CHECK((bytes.size() - 1) % 16 == 0);
      const QueueFlags flags(bytes.data(), depth, slots);
      flags.initialise();
      CHECK(bytes.back() == std::byte{0x5a});
      std::uint32_t free = 0;
      for (std::uint32_t i = 0; i < flags.free_words(); ++i) {
        free += static_cast<std::uint32_t>(__builtin_popcount(flags.free_slots(i)));
      }
      CHECK(free == slots);
      for (std::uint32_t i = 0; i < depth; ++i) {
        const std::uint32_t counter = flags.header().ticket + i;
        CHECK(flags.mark(counter) != QueueFlags::marked(counter));
      }
      // Wraps within two rounds, at the start of a round with phase 1.
      CHECK(flags.header().ticket + 2 * depth == 0);
    }
  }
}

}  // namespace

void test_queue_pair() {
  test_flags();
  test_entries();
  test_sizes();
  test_refusals();
  test_read_only();
  for (const std::uint32_t depth : {2u, 4u, 256u}) test_rounds(depth);
  test_drain();
  test_batches();
  for (const std::uint32_t depth : {2u, 4u, 256u}) {
    for (const std::uint32_t patience : {0u, 64u}) test_many_threads(depth, patience);
  }
  test_deadline();
  test_broken_pair();
  test_statuses();
}

}  // namespace bamquery
