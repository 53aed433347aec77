// The queue pairs that a controller offers: leased ones, each one thread block's at a time, and shared ones.
#pragma once

#include "driver/core/queues/queue_pair.hpp"

namespace bamquery {

/// In memory of the side that runs; QueueMemory fills it.
struct QueuePoolView {
  const QueuePairView* pairs;  ///< First those to lease, then the shared ones; all of one shape.
  uint32_t* free_pairs;        ///< Bit b of word i: pair 32 i + b is nobody's.
  uint32_t* retired_pairs;     ///< How many pairs to lease came back broken, and stay away.
  uint32_t leased_count;       ///< Pairs to lease.
  uint32_t shared_count;
  uint32_t flags_bytes;  ///< Of a pair: what a lease needs of its block's memory.
};

/// A shared pair for a thread; threads that spread their hints spread over the pairs. There must be some.
BAMQUERY_CORE QueuePair<Scope::kDevice> shared_pair(const QueuePoolView& pool, uint32_t hint) {
  const QueuePairView& view = pool.pairs[pool.leased_count + hint % pool.shared_count];
  return {view, view.flags};
}

/// One queue pair, for a thread block (or a CPU thread) alone, with its flags in the block's own memory. All
/// threads of the block make each call together. Grids may be larger than the pool, as blocks give leases
/// back when they end.
class BlockLease {
 public:
  /// `flags`: pool.flags_bytes of memory that the block shares, on a multiple of 16.
  BAMQUERY_CORE BlockLease(const QueuePoolView& pool, byte* flags) : pool_(pool), flags_(flags) {}

  /// Waits for a pair. kNoQueuePair at the deadline; kQueueBroken if none is left that works.
  BAMQUERY_CORE Status begin(Deadline deadline) {
    if (BlockThreads::rank() == 0) notice() = take_pair(deadline);
    BlockThreads::sync();
    const uint32_t taken = notice();
    BlockThreads::sync();  // All have read it before the copy goes over it.
    if (taken == kNone) return status::kNoQueuePair;
    if (taken == kAllBroken) return status::kQueueBroken;
    pair_ = taken;
    copy(flags_, pool_.pairs[pair_].flags);
    BlockThreads::sync();
    return status::kSuccess;
  }

  /// After begin() succeeded. `patience`: see QueuePair.
  BAMQUERY_CORE QueuePair<Scope::kBlock> pair(uint32_t patience = 0) const {
    return {pool_.pairs[pair_], flags_, patience};
  }

  /// After begin() succeeded: leaves the lease in its flags, where any thread of the block finds it by
  /// left().
  BAMQUERY_CORE void leave() const {
    if (BlockThreads::rank() == 0) notice() = pair_;
    BlockThreads::sync();
  }
  /// What leave() left there. Until its end() the pair is leased.
  BAMQUERY_CORE static BlockLease left(const QueuePoolView& pool, byte* flags) {
    BlockLease lease(pool, flags);
    lease.pair_ = lease.notice();
    return lease;
  }

  /// After begin() succeeded, when no thread of the block issues any more: waits for what is pending, takes
  /// all slots back that are not in quarantine, and gives the pair back, unless it is broken. The status is
  /// that of QueuePair::drain().
  BAMQUERY_CORE Status end(Deadline deadline) {
    BlockThreads::sync();
    const QueuePair<Scope::kBlock> mine = pair();
    if (BlockThreads::rank() == 0) notice() = mine.drain(deadline).code;
    BlockThreads::sync();
    const Status drained{static_cast<uint16_t>(notice())};
    take_slots_back(mine);
    BlockThreads::sync();
    copy(pool_.pairs[pair_].flags, flags_);
    BlockThreads::sync();
    if (BlockThreads::rank() == 0) give_back(mine.broken());
    return drained;
  }

 private:
  using PoolRef = AtomicRef<uint32_t, Scope::kDevice>;

  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kAllBroken = 0xfffffffeu;

  // Plain: BlockThreads::sync() stands between each write and the others' reads.
  BAMQUERY_CORE uint32_t& notice() const { return reinterpret_cast<QueueHeader*>(flags_)->notice; }

  BAMQUERY_CORE uint32_t take_pair(Deadline deadline) const {
    for (Backoff wait;; wait.pause()) {
      for (uint32_t first = 0; first < pool_.leased_count; first += 32) {
        PoolRef word(pool_.free_pairs[first / 32]);
        // Relaxed: a hint.
        for (uint32_t seen = word.load(kRelaxed); seen != 0; seen = word.load(kRelaxed)) {
          const uint32_t bit = seen & (0u - seen);
          // Acquire: the flags that the former lessee copied back.
          if ((word.fetch_and(~bit, kAcquire) & bit) != 0) return first + lowest_bit(bit);
        }
      }
      // Relaxed: nothing hangs on it.
      if (PoolRef(*pool_.retired_pairs).load(kRelaxed) == pool_.leased_count) return kAllBroken;
      if (deadline.passed()) return kNone;
    }
  }

  BAMQUERY_CORE void give_back(bool broken) const {
    if (broken) {
      PoolRef(*pool_.retired_pairs).fetch_add(1, kRelaxed);
    } else {
      // Release: the flags are copied back.
      PoolRef(pool_.free_pairs[pair_ / 32]).fetch_or(1u << pair_ % 32, kRelease);
    }
  }

  // Slots that somebody left without releasing them.
  BAMQUERY_CORE void take_slots_back(const QueuePair<Scope::kBlock>& mine) const {
    const uint32_t slots = mine.view().slots;
    for (uint32_t i = BlockThreads::rank(); 32 * i < slots; i += BlockThreads::count()) {
      uint32_t bits = 0;
      for (uint32_t slot = 32 * i; slot < 32 * i + 32 && slot < slots; ++slot) {
        uint32_t& word = mine.flags().command(slot);
        const CommandWord command{word};
        if (command.state() == CommandState::kQuarantined) continue;
        word = CommandWord::idle(command.tag()).word;
        bits |= 1u << slot % 32;
      }
      mine.flags().free_slots(i) = bits;
    }
  }

  BAMQUERY_CORE void copy(byte* to, const byte* from) const {
    for (uint32_t at = 16 * BlockThreads::rank(); at < pool_.flags_bytes; at += 16 * BlockThreads::count()) {
      copy_vector(to + at, from + at);
    }
  }

  QueuePoolView pool_;
  byte* flags_;
  uint32_t pair_ = 0;
};

}  // namespace bamquery
