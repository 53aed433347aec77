// Queue pairs driven by warps whose lanes diverge and leave at random, or do all things together.
// Usage: warp_rings_test ROUNDS SEED

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "driver/core/error_record.hpp"
#include "driver/core/queues/drive_queues.hpp"
#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/warps.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kLong = std::uint64_t{1} << 40;

struct Round {
  std::uint32_t warps;
  bool sweeper;   // The last warp only sweeps.
  bool shared;    // Threads spread over shared pairs, or one pair is leased.
  bool together;  // A warp's lanes call as one; they want fewer commands or more, and sit out the others'.
  bool holds;     // Lanes keep their slot over all commands.
  std::uint32_t commands;
  RingFaults faults;
  QueueShape shape;
};

Round draw_round(Random& random) {
  const auto one_of = [&](std::initializer_list<std::uint32_t> values) {
    return values.begin()[random.below(values.size())];
  };
  Round round{};
  round.sweeper = random.below(2) != 0;
  round.warps = 1 + random.below(3) + (round.sweeper ? 1 : 0);
  round.shared = random.below(2) != 0;
  round.together = random.below(2) != 0;
  round.shape.leased_pairs = round.shared ? 0 : 1;
  round.shape.shared_pairs = round.shared ? 1 + random.below(3) : 0;
  round.shape.depth = one_of({2, 4, 32, 64, 128, 256});
  round.shape.slots = 1 + random.below(round.shape.depth - 1);
  round.shape.slot_bytes = 512;
  // Lanes that wait for slots wait long here, where one lane runs at a time.
  round.commands = round.shape.slots < 32 ? 1 : 1 + random.below(4);
  if (round.shape.slots < 32) round.warps = round.sweeper ? 2 : 1;
  round.faults.error = one_of({0, 200});
  const bool roomy = round.shape.slots >= 128;
  round.holds = roomy && random.below(2) != 0;
  if (roomy && random.below(2) != 0) round.faults.late = round.faults.lost = 20;
  return round;
}

class Test {
 public:
  explicit Test(std::uint32_t seed) : random_(seed), round_(draw_round(random_)), rings_(round_.shape) {}

  void run(std::uint32_t seed) {
    RingController controller(rings_.memory, round_.faults, seed);
    const std::uint32_t threads = 32 * round_.warps;
    last_.resize(threads, 0);
    for (std::uint32_t& last : last_) last = random_.below(4) == 0 ? random_.below(3) : round_.commands;
    working_ = 32 * (round_.warps - (round_.sweeper ? 1 : 0));
    warps::ThreadBlock block;
    block.run(
        threads, seed, [&](std::uint32_t thread) { round_.shared ? share(thread) : lease(thread); },
        [&] { controller.step(); });
    check(controller);
  }

 private:
  void share(std::uint32_t thread) {
    work(thread, shared_pair(rings_.pool, round_.together ? thread / 32 : thread * 7 / 3));
  }

  void lease(std::uint32_t thread) {
    BlockLease lease(rings_.pool, reinterpret_cast<byte*>(flags_));
    CHECK(lease.begin(Deadline::in(kLong)).ok());
    work(thread, lease.pair());
    CHECK(lease.end(Deadline::in(kLong)).ok());
  }

  template <Scope kScope>
  void work(std::uint32_t thread, const QueuePair<kScope>& pair) {
    const AtomicRef<std::uint32_t, Scope::kBlock> working(working_);
    if (round_.sweeper && thread / 32 == round_.warps - 1) {
      while (Lanes::warp().broadcast(working.load(kRelaxed), 0) != 0) {
        // Lanes of a warp may have different shared pairs.
        if (kScope == Scope::kBlock) {
          pair.sweep(Lanes::warp());
        } else {
          pair.sweep();
        }
      }
      return;
    }
    if (round_.together) {
      work_together(thread, pair);
      working.fetch_sub(1, kRelaxed);
      return;
    }
    std::uint32_t slot = 0;
    bool holds = false;
    // Lanes end after different numbers of commands, some at once.
    for (std::uint32_t i = 0; i < last_[thread]; ++i) {
      if (!holds) CHECK(pair.acquire_slot(Deadline::in(kLong), slot).ok());
      holds = command(pair, slot, thread * 8 + i);
      if (holds && !round_.holds) pair.release_slot(slot);
      holds = holds && round_.holds;
    }
    if (holds) pair.release_slot(slot);
    working.fetch_sub(1, kRelaxed);
  }

  // All lanes make all calls; a round takes as many as there are slots for, the others come in the next.
  template <Scope kScope>
  void work_together(std::uint32_t thread, const QueuePair<kScope>& pair) {
    constexpr Lanes kWarp = Lanes::warp();
    std::uint32_t done = 0;
    std::uint32_t slot = 0;
    bool holds = false;
    while (kWarp.any(done < last_[thread])) {
      const bool wants = done < last_[thread];
      if (wants && !holds) holds = pair.acquire_slot(Deadline{0}, slot).ok();
      const bool goes = wants && holds;
      const Request request{Opcode::kRead, 1, std::uint64_t{thread} * 8 + done, 1};
      const bool misses = goes && claim(pair, slot, request.lba);
      CHECK(pair.issue(kWarp, goes, slot, request).ok());
      const Status status = pair.wait(kWarp, goes, slot, Deadline::in(misses ? 3000 : kLong));
      if (goes) {
        holds = finish(pair, slot, request, status);
        ++done;
      } else {
        CHECK(status.ok());
      }
      if (holds && !round_.holds) {
        pair.release_slot(slot);
        holds = false;
      }
      if (!goes) pair.sweep();  // A late completion may bring a slot back.
    }
    if (holds) pair.release_slot(slot);
  }

  // Whether the slot is still ours.
  template <Scope kScope>
  bool command(const QueuePair<kScope>& pair, std::uint32_t slot, std::uint64_t lba) {
    const Request request{Opcode::kRead, 1, lba, 1};
    const bool misses = claim(pair, slot, lba);
    CHECK(pair.issue(slot, request).ok());
    return finish(pair, slot, request, pair.wait(slot, Deadline::in(misses ? 3000 : kLong)));
  }

  // The slot must be nobody else's. Whether its command will miss its deadline.
  template <Scope kScope>
  bool claim(const QueuePair<kScope>& pair, std::uint32_t slot, std::uint64_t lba) {
    std::uint8_t& owner = owner_of(pair, slot);
    CHECK(owner == 0);
    const Fate fate = fate_of(round_.faults, lba);
    const bool misses = fate == Fate::kLost || fate == Fate::kLate;
    // A slot in quarantine comes back while we are still in wait().
    owner = misses ? 0 : 1;
    return misses;
  }

  template <Scope kScope>
  std::uint8_t& owner_of(const QueuePair<kScope>& pair, std::uint32_t slot) {
    return owners_[((std::uint64_t{pair.view().id} << 16) + slot) % kMostOwners];
  }

  // Whether the slot is still ours.
  template <Scope kScope>
  bool finish(const QueuePair<kScope>& pair, std::uint32_t slot, const Request& request, Status status) {
    const std::uint64_t lba = request.lba;
    const Fate fate = fate_of(round_.faults, lba);
    const bool misses = fate == Fate::kLost || fate == Fate::kLate;
    ++issued_;
    if (misses) {
      CHECK(status == status::kDeadlineMissed);
      ++missed_;
      return false;
    }
    owner_of(pair, slot) = 0;
    if (fate == Fate::kFailed) {
      CHECK(status == status_of(lba));
      record_error(&error_, request, status);
      ++failed_;
    } else {
      CHECK(status.ok());
      for (std::uint32_t at = 0; at < 512; at += 8) {
        std::uint64_t word;
        std::memcpy(&word, pair.landing(slot) + at, sizeof word);
        CHECK(word == block_word(lba, at));
      }
    }
    return true;
  }

  void check(RingController& controller) {
    std::uint64_t wanted = 0, issued = 0, missed = 0;
    for (std::uint32_t thread = 0; thread < last_.size(); ++thread) {
      if (!round_.sweeper || thread / 32 != round_.warps - 1) wanted += last_[thread];
    }
    CHECK(issued_ == wanted && error_.count == failed_);
    if (failed_ != 0) CHECK(status_of(error_.lba).code == error_.status && error_.nsid == 1);
    controller.release_late();
    for (std::uint32_t i = 0; i < round_.shape.pairs(); ++i) {
      const QueuePair<Scope::kDevice> pair(rings_.pool.pairs[i], rings_.pool.pairs[i].flags);
      controller.step();
      // Outside the block there are no lanes that could sweep.
      const QueueHeader& header = pair.flags().header();
      std::uint32_t free = 0;
      for (std::uint32_t w = 0; w < pair.flags().free_words(); ++w) {
        free += static_cast<std::uint32_t>(__builtin_popcount(pair.flags().free_slots(w)));
      }
      CHECK(header.ticket == header.tail && header.broken == 0);
      CHECK(round_.shape.slots - free == header.missed - header.late);
      CHECK(header.ticket - header.head == header.missed - header.late);
      issued += header.ticket - first_counter(round_.shape.depth);
      missed += header.missed;
    }
    CHECK(issued == issued_ && missed == missed_);
  }

  static constexpr std::size_t kMostOwners = 1 << 18;

  Random random_;
  Round round_;
  Rings rings_;
  std::vector<std::uint32_t> last_;
  alignas(16) std::byte flags_[QueueFlags::bytes(256, 255)] = {};
  std::uint32_t working_ = 0;
  ErrorRecord error_{};
  std::uint64_t issued_ = 0, failed_ = 0, missed_ = 0;
  std::vector<std::uint8_t> owners_ = std::vector<std::uint8_t>(kMostOwners, 0);
};

// A warp that is together rings one doorbell.
void test_batches() {
  Rings rings({.leased_pairs = 0, .shared_pairs = 1, .depth = 64, .slots = 40, .slot_bytes = 512});
  RingController controller(rings.memory);
  std::uint32_t taken = 0;
  warps::ThreadBlock block;
  block.run(
      32, 1,
      [&](std::uint32_t thread) {
        const auto pair = shared_pair(rings.pool, 0);
        std::uint32_t slot;
        CHECK(pair.acquire_slot(Deadline::in(kLong), slot).ok());
        taken += 1 + (slot < 40 ? 0 : 100);
        CHECK(pair.issue(Lanes::warp(), true, slot, {Opcode::kRead, 1, thread, 1}).ok());
        CHECK(pair.wait(Lanes::warp(), true, slot, Deadline::in(kLong)).ok());
      },
      [&] { controller.step(); });
  CHECK(taken == 32);
  CHECK(shared_pair(rings.pool, 0).flags().header().doorbells == 1);
}

// A block with a pair of each drive, whose shapes differ; lanes of a warp want different drives at a time.
void test_drives(std::uint32_t seed) {
  constexpr std::uint32_t kThreads = 64, kCommands = 3, kBlocks[] = {512, 4096, 512};
  Random random(seed);
  std::vector<std::unique_ptr<Rings>> rings;
  std::vector<std::unique_ptr<RingController>> controllers;
  std::vector<QueuePoolView> pools;
  const std::uint32_t drives = 2 + random.below(2);
  for (std::uint32_t drive = 0; drive < drives; ++drive) {
    const QueueShape shape{.leased_pairs = 1 + random.below(3),
                           .shared_pairs = 0,
                           .depth = 128u << random.below(2),
                           .slots = kThreads + random.below(32),
                           .slot_bytes = 4096,
                           .block_bytes = kBlocks[(drive + seed) % 3]};
    rings.push_back(std::make_unique<Rings>(shape));
    controllers.push_back(std::make_unique<RingController>(rings.back()->memory, RingFaults{}, seed));
    pools.push_back(rings.back()->pool);
  }
  std::vector<std::uint64_t> flags(LeasedPairs::flags_bytes(pools.data(), drives) / 8 + 2);
  byte* const at =
      reinterpret_cast<byte*>(flags.data()) + reinterpret_cast<std::uintptr_t>(flags.data()) % 16;
  std::vector<std::uint32_t> asked(drives, 0);
  warps::ThreadBlock block;
  block.run(
      kThreads, seed,
      [&](std::uint32_t thread) {
        const LeasedPairs pairs(pools.data(), drives, at);
        std::uint32_t failed = drives;
        CHECK(pairs.begin(Deadline::in(kLong), failed).ok());
        for (std::uint32_t i = 0; i < kCommands; ++i) {
          const std::uint32_t drive = (thread * 7 + i * seed) % drives;
          const Request request{Opcode::kRead, 1, std::uint64_t{thread} * 8 + i, 1, drive};
          std::uint32_t slot = 0;
          CHECK(pairs.at(drive).acquire_slot(Deadline::in(kLong), slot).ok());
          ++asked[drive];
          for_each_drive(Lanes::warp(), pairs, true, drive, [&](auto& pair, bool mine) {
            CHECK(pair.issue(Lanes::warp(), mine, slot, request).ok());
          });
          for_each_drive(Lanes::warp(), pairs, true, drive, [&](auto& pair, bool mine) {
            CHECK(pair.wait(Lanes::warp(), mine, slot, Deadline::in(kLong)).ok());
          });
          std::uint64_t word;
          std::memcpy(&word, pairs.at(drive).landing(slot) + pairs.lba_bytes(drive) - 8, sizeof word);
          CHECK(word == block_word(request.lba, pairs.lba_bytes(drive) - 8));
          pairs.at(drive).release_slot(slot);
        }
        CHECK(pairs.end(Deadline::in(kLong), failed).ok());
      },
      [&] {
        for (const auto& controller : controllers) controller->step();
      });
  for (std::uint32_t drive = 0; drive < drives; ++drive) {
    std::uint32_t issued = 0, free = 0;
    for (std::uint32_t pair = 0; pair < pools[drive].leased_count; ++pair) {
      const QueuePairView& view = pools[drive].pairs[pair];
      const QueueFlags left(view.flags, view.depth, view.slots);
      issued += left.header().ticket - first_counter(view.depth);
      free += *pools[drive].free_pairs >> pair & 1;
    }
    CHECK(issued == asked[drive] && free == pools[drive].leased_count);
  }
}

}  // namespace
}  // namespace bamquery

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const auto rounds = static_cast<std::uint32_t>(std::atol(arguments[1]));
  const auto first = static_cast<std::uint32_t>(std::atol(arguments[2]));
  bamquery::test_batches();
  for (std::uint32_t seed = first; seed < first + 10; ++seed) bamquery::test_drives(seed);
  for (std::uint32_t seed = first; seed < first + rounds; ++seed) {
    std::fprintf(stderr, "seed %u\n", seed);  // The last one is the one that failed.
    bamquery::Test(seed).run(seed);
  }
  std::printf("all is well\n");
}
