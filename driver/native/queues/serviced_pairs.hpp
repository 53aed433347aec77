// Queue pairs of several drives for threads of this process.
#pragma once

#include <cstdint>
#include <span>

#include "driver/core/queues/queue_pool.hpp"
#include "driver/native/queues/serviced_pair.hpp"

namespace bamquery {

/// As SharedPairs; waits also serve controllers that have no threads.
class ServicedPairs {
 public:
  struct Drive {
    QueuePoolView pool;
    Controller* controller;
  };

  /// `drives` outlives it.
  ServicedPairs(std::span<const Drive> drives, std::uint32_t hint) : drives_(drives), hint_(hint) {}

  ServicedPair<Scope::kDevice> at(std::uint32_t drive) const {
    const Drive& served = drives_[drive];
    return {shared_pair(served.pool, hint_), *served.controller};
  }
  std::uint32_t lba_bytes(std::uint32_t drive) const { return drives_[drive].pool.pairs[0].block_bytes; }

  template <typename Group>
  std::uint32_t sweep(Group group) const {
    std::uint32_t swept = 0;
    for (std::uint32_t drive = 0; drive < drives_.size(); ++drive) swept += at(drive).sweep(group);
    return swept;
  }

 private:
  std::span<const Drive> drives_;
  std::uint32_t hint_;
};

}  // namespace bamquery
