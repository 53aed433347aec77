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

}  // namespace bamquery
