// Queue pairs of several drives, as what lies above them sees them.
#pragma once

#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

/// Whether a queue is of several drives: `at(drive)` is a queue pair of that drive, or what stands for one,
/// and `lba_bytes(drive)` its LBA's size. (No concept: numba compiles as C++17.)
template <typename Queue, typename = void>
inline constexpr bool kOfDrives = false;
template <typename Queue>
inline constexpr bool kOfDrives<Queue, decltype(static_cast<void>(&Queue::lba_bytes))> = true;

/// The queue pair of a drive; a queue that is one drive's is its own.
template <typename Queue>
BAMQUERY_CORE decltype(auto) queue_of(Queue& queue, [[maybe_unused]] uint32_t drive) {
  if constexpr (kOfDrives<Queue>) {
    return queue.at(drive);
  } else {
    return (queue);
  }
}

/// Calls `call(queue pair, whether it is this lane's drive)` for each drive that some lane wants, all lanes
/// of the group together.
template <typename Group, typename Queue, typename Call>
BAMQUERY_CORE void for_each_drive(Group group, Queue& queue, bool wanted, [[maybe_unused]] uint32_t drive,
                                  Call call) {
  if constexpr (kOfDrives<Queue>) {
    for (uint32_t left = group.ballot(wanted); left != 0;) {
      const uint32_t next = group.broadcast(drive, lowest_bit(left));
      const bool mine = wanted && drive == next;
      auto&& pair = queue.at(next);
      call(pair, mine);
      left &= ~group.ballot(mine);
    }
  } else {
    call(queue, wanted);
  }
}

/// Of each drive's pool the shared pair that a thread's hint falls to. Pools outlive it.
class SharedPairs {
 public:
  BAMQUERY_CORE SharedPairs(const QueuePoolView* pools, uint32_t drives, uint32_t hint)
      : pools_(pools), drives_(drives), hint_(hint) {}

  BAMQUERY_CORE QueuePair<Scope::kDevice> at(uint32_t drive) const {
    return shared_pair(pools_[drive], hint_);
  }
  BAMQUERY_CORE uint32_t lba_bytes(uint32_t drive) const { return pools_[drive].pairs[0].block_bytes; }

  template <typename Group>
  BAMQUERY_CORE uint32_t sweep(Group group) const {
    uint32_t swept = 0;
    for (uint32_t drive = 0; drive < drives_; ++drive) swept += at(drive).sweep(group);
    return swept;
  }

 private:
  const QueuePoolView* pools_;
  uint32_t drives_;
  uint32_t hint_;
};

/// Of each drive's pool a pair that one thread block (or a CPU thread) leases: BlockLease for several drives.
/// All threads of the block make begin() and end() together, and its lanes ask any of the drives. Pools
/// outlive it.
class LeasedPairs {
 public:
  /// `flags`: flags_bytes() of memory that the block shares, on a multiple of 16. `patience`: see QueuePair.
  BAMQUERY_CORE LeasedPairs(const QueuePoolView* pools, uint32_t drives, byte* flags, uint32_t patience = 0)
      : pools_(pools), drives_(drives), stride_(stride(pools, drives)), flags_(flags), patience_(patience) {}

  /// What leases of these pools need of their block's memory.
  BAMQUERY_CORE static uint32_t flags_bytes(const QueuePoolView* pools, uint32_t drives) {
    return drives * stride(pools, drives);
  }

  /// A lease of each drive, in their order: so no block waits for one that waits for it. Where a drive has
  /// none, `drive` says which, those before it are given back, and the status is BlockLease::begin()'s.
  BAMQUERY_CORE Status begin(Deadline deadline, uint32_t& drive) const {
    for (drive = 0; drive < drives_; ++drive) {
      BlockLease lease(pools_[drive], flags_of(drive));
      const Status status = lease.begin(deadline);
      if (!status.ok()) {
        uint32_t ignored;
        (void)end(drive, deadline, ignored);  // Nothing was issued.
        return status;
      }
      lease.leave();
    }
    return status::kSuccess;
  }

  /// After begin() succeeded, when no thread of the block issues any more: ends every lease, whichever fails;
  /// the first failure is BlockLease::end()'s, of `drive`.
  BAMQUERY_CORE Status end(Deadline deadline, uint32_t& drive) const { return end(drives_, deadline, drive); }

  BAMQUERY_CORE QueuePair<Scope::kBlock> at(uint32_t drive) const {
    return BlockLease::left(pools_[drive], flags_of(drive)).pair(patience_);
  }
  BAMQUERY_CORE uint32_t lba_bytes(uint32_t drive) const { return pools_[drive].pairs[0].block_bytes; }

  template <typename Group>
  BAMQUERY_CORE uint32_t sweep(Group group) const {
    uint32_t swept = 0;
    for (uint32_t drive = 0; drive < drives_; ++drive) swept += at(drive).sweep(group);
    return swept;
  }

 private:
  BAMQUERY_CORE static uint32_t stride(const QueuePoolView* pools, uint32_t drives) {
    uint32_t most = 0;
    for (uint32_t drive = 0; drive < drives; ++drive) {
      if (pools[drive].flags_bytes > most) most = pools[drive].flags_bytes;
    }
    return most;
  }

  BAMQUERY_CORE byte* flags_of(uint32_t drive) const { return flags_ + static_cast<size_t>(drive) * stride_; }

  BAMQUERY_CORE Status end(uint32_t drives, Deadline deadline, uint32_t& failed) const {
    Status first = status::kSuccess;
    for (uint32_t drive = 0; drive < drives; ++drive) {
      const Status status = BlockLease::left(pools_[drive], flags_of(drive)).end(deadline);
      if (!first.ok() || status.ok()) continue;
      first = status;
      failed = drive;
    }
    return first;
  }

  const QueuePoolView* pools_;
  uint32_t drives_;
  uint32_t stride_;
  byte* flags_;
  uint32_t patience_;
};

}  // namespace bamquery
