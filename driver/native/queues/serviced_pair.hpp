// A queue pair for threads of this process, whose waits also serve a controller that has no threads.
#pragma once

#include "driver/core/queues/queue_pair.hpp"
#include "driver/native/controller/controller.hpp"

namespace bamquery {

/// Has what a QueuePair has. With a controller that has threads it only waits.
template <Scope kScope>
class ServicedPair {
 public:
  ServicedPair(const QueuePair<kScope>& pair, Controller& controller)
      : pair_(pair), controller_(&controller), number_(pair.view().id - controller.first_queue()) {}

  Status acquire_slot(Deadline deadline, std::uint32_t& slot) const {
    for (Backoff wait;; wait.pause()) {
      const Status status = pair_.acquire_slot(Deadline{0}, slot);  // one look
      if (!(status == status::kNoSlot) || deadline.passed()) return status;
      service(0);
    }
  }

  void release_slot(std::uint32_t slot) const { pair_.release_slot(slot); }
  Status issue(std::uint32_t slot, const Request& request) const { return pair_.issue(slot, request); }
  template <typename Group>
  Status issue(Group group, bool wanted, std::uint32_t slot, const Request& request) const {
    return pair_.issue(group, wanted, slot, request);
  }
  void ring_doorbell() const { pair_.ring_doorbell(); }
  bool try_wait(std::uint32_t slot, Status& status) const { return pair_.try_wait(slot, status); }
  std::byte* landing(std::uint32_t slot) const { return pair_.landing(slot); }

  /// Serves the pair, then consumes completions.
  std::uint32_t sweep() const {
    service(0);
    return pair_.sweep();
  }
  template <typename Group>
  std::uint32_t sweep(Group) const {
    return sweep();
  }

  /// As QueuePair::wait().
  template <typename Group>
  Status wait(Group, bool wanted, std::uint32_t slot, Deadline deadline) const {
    return wanted ? wait(slot, deadline) : status::kSuccess;
  }
  Status wait(std::uint32_t slot, Deadline deadline) const {
    Status status;
    if (wait_until(slot, deadline, status)) return status;
    return pair_.abandon(slot, status::kDeadlineMissed);
  }

  /// Waits no longer than that, and leaves the command pending then: false. If the queue breaks, the slot is
  /// lost as with wait().
  bool wait_until(std::uint32_t slot, Deadline time, Status& status) const {
    for (Backoff wait; !pair_.try_wait(slot, status);) {
      if (pair_.broken()) {
        status = pair_.abandon(slot, status::kQueueBroken);
        return true;
      }
      if (time.passed()) return false;
      // A disk is slept for; other threads may be at the pair meanwhile.
      const bool served = service(kDiskWaitNs);
      if (pair_.sweep() == 0 && !served) wait.pause();
    }
    return true;
  }

  const QueuePair<kScope>& pair() const { return pair_; }

 private:
  static constexpr std::uint64_t kDiskWaitNs = 100'000;

  bool service(std::uint64_t wait_ns) const { return controller_->service(number_, wait_ns); }

  QueuePair<kScope> pair_;
  Controller* controller_;
  std::uint32_t number_;  ///< Of the pair, from 0 on.
};

}  // namespace bamquery
