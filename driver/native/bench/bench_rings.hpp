// The queue pairs of a controller, whichever it is, as the clients of a benchmark use them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "driver/core/array/array_extent.hpp"
#include "driver/core/queues/drive_queues.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

/// What the queue pairs of a pool have seen.
struct RingCounts {
  std::uint64_t commands = 0;   ///< Issued.
  std::uint64_t doorbells = 0;  ///< Writes to doorbells of submission queues.
  std::uint64_t errors = 0;     ///< Completions with a status other than success.
  std::uint64_t missed = 0;     ///< Commands that missed their deadline.
  std::uint64_t broken = 0;     ///< Queue pairs that are out of use.
};

class BenchRings {
 public:
  /// All pairs of the memory are to lease, and its rings are fresh. Both outlive it. `served_by_clients`: who
  /// waits does the controller's work.
  BenchRings(QueueMemory& memory, Controller& controller, std::uint32_t nsid, std::uint64_t deadline_ns,
             bool served_by_clients);

  const QueuePoolView& pool() const { return pool_; }
  Controller& controller() const { return controller_; }
  std::uint32_t nsid() const { return nsid_; }
  std::uint64_t deadline_ns() const { return deadline_ns_; }

  /// The controller's work for one queue pair, where clients do it; naps a moment where a disk has to answer
  /// first.
  void serve(const QueuePairView& pair) const {
    if (served_by_clients_) controller_.service(pair.id - first_queue_, kNapNs);
  }

  /// Once clients have gone.
  RingCounts counts() const;

 private:
  static constexpr std::uint64_t kNapNs = 100'000;

  Controller& controller_;
  std::uint32_t nsid_;
  std::uint64_t deadline_ns_;
  bool served_by_clients_;
  std::uint32_t first_queue_;
  AlignedBuffer pool_memory_;
  QueuePoolView pool_;
  Controller::Activity activity_;
};

/// The rings of several controllers, each a drive, whose namespaces are striped in their order.
class BenchDrives {
 public:
  /// `stripe_bytes` of a power of two pages, where there are several; std::invalid_argument.
  BenchDrives(std::vector<std::unique_ptr<BenchRings>> rings, std::uint64_t stripe_bytes,
              std::uint32_t page_bytes);

  std::uint32_t count() const { return static_cast<std::uint32_t>(rings_.size()); }
  BenchRings& rings(std::uint32_t drive) const { return *rings_[drive]; }
  /// One for each drive.
  const QueuePoolView* pools() const { return pools_.data(); }
  std::uint64_t deadline_ns() const { return rings_[0]->deadline_ns(); }
  /// The smallest of the LBAs.
  std::uint32_t block_bytes() const;
  /// So many bytes from the address space's first on, for a cache of blocks of block_bytes().
  ArrayExtent extent(std::uint64_t bytes) const;

 private:
  std::vector<std::unique_ptr<BenchRings>> rings_;
  std::vector<QueuePoolView> pools_;
  std::vector<StripeMember> members_;
  std::uint32_t stripe_shift_ = 0;
};

}  // namespace bamquery
