// Random commands of many threads on random rings, with faults: each command ends as its LBA says, once.

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "driver/core/error_record.hpp"
#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/rings/rings_test.hpp"

namespace bamquery {
namespace {

// How commands ended, of one thread.
struct Tally {
  std::uint64_t issued = 0, done = 0, failed = 0, missed = 0;
};

struct Round {
  RingFaults faults;
  QueueShape shape;
  std::uint32_t threads, commands;
  bool hasty;  // Some deadlines pass at any moment.
};

Round draw_round(Random& random) {
  const auto one_of = [&](std::initializer_list<std::uint32_t> values) {
    return values.begin()[random.below(values.size())];
  };
  Round round{};
  round.shape.leased_pairs = 1 + random.below(3);
  round.shape.shared_pairs = 1 + random.below(2);
  round.shape.depth = one_of({2, 4, 8, 64, 256});
  round.shape.slots = 1 + random.below(round.shape.depth - 1);
  round.shape.slot_bytes = one_of({512, 4096, 16384});
  round.faults.error = one_of({0, 20, 200});
  // What never comes is missed by the clock: seldom, and where other slots are left to go on with.
  const bool loses = random.below(2) && round.shape.slots > 60;
  round.faults.lost = loses ? 5 : 0;
  round.faults.late = loses ? 5 : 0;
  round.threads = 1 + random.below(6);
  round.commands = 200;
  round.hasty = random.below(2) != 0;
  return round;
}

template <Scope kScope>
class Client {
 public:
  Client(const QueuePair<kScope>& pair, const Round& round, std::uint64_t first_lba, std::uint32_t seed,
         Tally& tally)
      : pair_(pair), round_(round), lba_(first_lba), random_(seed), tally_(tally) {}

  // Keeps some commands going at a time.
  void run(std::uint32_t commands) {
    const std::uint32_t width = 1 + random_.below(8);
    for (std::uint32_t issued = 0; issued < commands || !running_.empty();) {
      if (issued < commands && running_.size() < width && start()) {
        ++issued;
        continue;
      }
      if (!running_.empty()) finish(random_.below(running_.size()));
    }
  }

 private:
  struct Running {
    std::uint32_t slot;
    Request request;
  };

  // False if no slot is free while we hold some: waiting for one might be waiting for ourselves.
  bool start() {
    std::uint32_t slot;
    const Status taken = pair_.acquire_slot(running_.empty() ? Deadline::in(kLong) : Deadline{0}, slot);
    if (taken == status::kNoSlot && !running_.empty()) return false;
    CHECK(taken.ok());
    const std::uint32_t blocks = 1 + random_.below(round_.shape.slot_bytes / 512);
    Request request{random_.below(3) ? Opcode::kRead : Opcode::kWrite, 1, lba_, blocks};
    lba_ += blocks;
    if (random_.below(32) == 0) request = {Opcode::kFlush, 1, 0, 0};
    if (request.opcode == Opcode::kWrite) fill(slot, request);
    CHECK(pair_.issue(slot, request).ok());
    ++tally_.issued;
    running_.push_back({slot, request});
    return true;
  }

  void finish(std::size_t which) {
    const Running command = running_[which];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
    const bool flush = command.request.opcode == Opcode::kFlush;
    const Fate fate = flush ? Fate::kDone : fate_of(round_.faults, command.request.lba);
    const bool misses = fate == Fate::kLost || fate == Fate::kLate;
    // Some deadlines pass just as the command ends: both ways are right.
    const bool hasty = !misses && round_.hasty && random_.below(8) == 0;
    const std::uint64_t patience = misses ? 1'000'000 : hasty ? random_.below(30'000) : kLong;
    const Status status = pair_.wait(command.slot, Deadline::in(patience));
    if (misses || (hasty && status == status::kDeadlineMissed)) {
      CHECK(status == status::kDeadlineMissed);
      ++tally_.missed;
      return;
    }
    if (fate == Fate::kFailed) {
      CHECK(status == status_of(command.request.lba));
      ++tally_.failed;
    } else {
      CHECK(status.ok());
      if (command.request.opcode == Opcode::kRead) check(command);
      ++tally_.done;
    }
    pair_.release_slot(command.slot);
  }

  void fill(std::uint32_t slot, const Request& request) {
    for (std::uint32_t at = 0; at < request.blocks * 512; at += 8) {
      const std::uint64_t word = block_word(request.lba + at / 512, at % 512);
      std::memcpy(pair_.landing(slot) + at, &word, sizeof word);
    }
  }

  void check(const Running& command) {
    for (std::uint32_t at = 0; at < command.request.blocks * 512; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, pair_.landing(command.slot) + at, sizeof word);
      CHECK(word == block_word(command.request.lba + at / 512, at % 512));
    }
  }

  QueuePair<kScope> pair_;
  const Round& round_;
  std::uint64_t lba_;
  Random random_;
  Tally& tally_;
  std::vector<Running> running_;
};

struct alignas(16) FlagsWord {
  byte bytes[16];
};

void run_round(std::uint32_t seed) {
  Random random(seed);
  const Round round = draw_round(random);
  Rings rings(round.shape);
  RingController controller(rings.memory, round.faults, seed);
  controller.start();
  std::vector<Tally> tallies(round.threads);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < round.threads; ++t) {
    threads.emplace_back([&, t, thread_seed = random.next()] {
      const std::uint64_t first_lba = std::uint64_t{t} << 32;
      if (thread_seed % 2) {
        Client<Scope::kDevice> client(shared_pair(rings.pool, thread_seed / 2), round, first_lba, thread_seed,
                                      tallies[t]);
        client.run(round.commands);
        return;
      }
      std::vector<FlagsWord> flags(rings.pool.flags_bytes / 16);
      for (std::uint32_t turn = 0; turn < 4; ++turn) {
        BlockLease lease(rings.pool, reinterpret_cast<byte*>(flags.data()));
        CHECK(lease.begin(Deadline::in(kLong)).ok());
        Client<Scope::kBlock> client(lease.pair(), round, first_lba + (std::uint64_t{turn} << 24),
                                     thread_seed + turn, tallies[t]);
        client.run(round.commands / 4);
        CHECK(lease.end(Deadline::in(kLong)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  Tally all;
  for (const Tally& tally : tallies) {
    all.issued += tally.issued;
    all.done += tally.done;
    all.failed += tally.failed;
    all.missed += tally.missed;
  }
  CHECK(all.issued == std::uint64_t{round.threads} * round.commands);
  CHECK(all.issued == all.done + all.failed + all.missed);

  // What was late comes now, and frees its slots; what was lost keeps them.
  controller.release_late();
  const std::uint32_t pairs = round.shape.pairs();
  std::uint64_t issued = 0, lost = 0;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const QueuePair<Scope::kDevice> pair(rings.pool.pairs[i], rings.pool.pairs[i].flags);
    const QueueHeader& header = pair.flags().header();
    while (header.missed - header.late != controller.lost(i)) {
      pair.sweep();
      std::this_thread::yield();
    }
    std::uint32_t free = 0;
    for (std::uint32_t w = 0; w < pair.flags().free_words(); ++w) {
      free += static_cast<std::uint32_t>(__builtin_popcount(pair.flags().free_slots(w)));
    }
    CHECK(header.missed - header.late == round.shape.slots - free);
    CHECK(header.ticket == header.tail && header.ticket - header.head == header.missed - header.late);
    CHECK(!pair.broken());
    issued += header.ticket - first_counter(round.shape.depth);
    lost += header.missed;
  }
  CHECK(issued == all.issued && lost == all.missed);
}

}  // namespace

void stress_rings(double seconds, std::uint32_t seed) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  do {
    std::fprintf(stderr, "seed %u\n", seed);  // The last one is the one that failed.
    run_round(seed++);
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace bamquery
