// Reads and writes through the queue pairs by threads of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"
#include "driver/native/queues/serviced_pair.hpp"

namespace bamquery {

/// Each call leases a queue pair, keeps as many commands in flight as the pair has slots, and gives the pair
/// back; any number of threads may call. A failed command ends the call with an NvmeError, once no other
/// command of the call is in flight; commands that missed the deadline keep their slots in quarantine.
class CpuQueueClient {
 public:
  /// Asked every so often while a call waits; true ends it with kAbortRequested.
  using Interrupt = std::function<bool()>;

  /// The rings must be fresh. Memory and controller outlive the client, which keeps the controller's threads
  /// awake.
  CpuQueueClient(QueueMemory& memory, Controller& controller);

  /// Whole blocks of QueueShape::block_bytes: std::invalid_argument otherwise.
  void read(std::uint32_t nsid, std::uint64_t lba, std::span<std::byte> to, Deadline deadline,
            const Interrupt& interrupt);
  /// A command for each place, of as many blocks as `to` has room for, one after the other; no more than a
  /// slot has: std::invalid_argument otherwise.
  void read_places(std::uint32_t nsid, std::span<const std::uint64_t> lbas, std::span<std::byte> to,
                   Deadline deadline, const Interrupt& interrupt);
  void write(std::uint32_t nsid, std::uint64_t lba, std::span<const std::byte> from, Deadline deadline,
             const Interrupt& interrupt);
  void flush(std::uint32_t nsid, Deadline deadline, const Interrupt& interrupt);

  struct Counts {
    std::uint64_t errors = 0;       ///< Completions with a status other than success.
    std::uint64_t missed = 0;       ///< Commands that missed their deadline.
    std::uint64_t late = 0;         ///< Of those, commands whose completion came.
    std::uint64_t quarantined = 0;  ///< Slots that wait for one.
    std::uint64_t broken = 0;       ///< Queue pairs that are out of use.
  };
  /// While no call runs: takes what has come meanwhile, and counts.
  Counts settle();

 private:
  class Call;

  QueueMemory& memory_;
  Controller& controller_;
  Controller::Activity activity_;
  AlignedBuffer pool_memory_;
  QueuePoolView pool_;
};

}  // namespace bamquery
