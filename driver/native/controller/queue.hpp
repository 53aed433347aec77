// The controller's end of one queue pair.
#pragma once

#include <cstdint>

#include "driver/core/atomics.hpp"
#include "driver/core/nvme.hpp"

namespace bamquery {

/// Where the pair lies in the controller's memory. `depth` is a power of two.
struct ControllerQueueView {
  const SubmissionEntry* submissions;
  CompletionEntry* completions;
  std::uint32_t* tail_doorbell;
  std::uint32_t* head_doorbell;
  std::uint32_t depth;
  std::uint16_t id;
};

/// Used by one thread at a time. Commands are fetched only where the completion queue will have room for
/// their completions, so posting never waits.
class ControllerQueue {
 public:
  explicit ControllerQueue(const ControllerQueueView& view) : view_(view), mask_(view.depth - 1) {}

  const ControllerQueueView& view() const { return view_; }
  std::uint16_t id() const { return view_.id; }
  std::uint32_t depth() const { return view_.depth; }

  /// A doorbell took a value that no ring position has: nothing more is fetched.
  bool failed() const { return failed_; }

  /// Fetched, and neither completed nor forgotten.
  std::uint32_t in_flight() const { return in_flight_; }

  /// How many entries can be fetched now, `most` at most.
  std::uint32_t ready(std::uint32_t most) {
    // Acquire: the entries, and the data of writes, were stored before the doorbell.
    const std::uint32_t tail = AtomicRef<std::uint32_t, Scope::kSystem>(*view_.tail_doorbell).load(kAcquire);
    if (tail == head_ || failed_) [[likely]] {
      return 0;
    }
    if (tail > mask_) {
      failed_ = true;
      return 0;
    }
    const std::uint32_t waiting = (tail - head_) & mask_;
    const std::uint32_t wanted = waiting < most ? waiting : most;
    if (room() < wanted && !look_at_completion_head()) {
      failed_ = true;
      return 0;
    }
    return room() < wanted ? room() : wanted;
  }

  /// The `index`th entry that is ready.
  const SubmissionEntry& entry(std::uint32_t index) const {
    return view_.submissions[(head_ + index) & mask_];
  }

  /// Brings the next entries near, if there are any: the submitter's stores took them away.
  void prefetch(std::uint32_t most) const {
    // Relaxed: only a hint.
    const std::uint32_t tail = AtomicRef<std::uint32_t, Scope::kSystem>(*view_.tail_doorbell).load(kRelaxed);
    const std::uint32_t waiting = (tail - head_) & mask_;
    for (std::uint32_t i = 0; i < waiting && i < most; ++i) __builtin_prefetch(&entry(i));
  }

  void fetched(std::uint32_t count) {
    head_ = (head_ + count) & mask_;
    in_flight_ += count;
  }

  void complete(std::uint16_t command_id, Status status) { complete_with_head(command_id, status, head_); }

  /// A completion with a submission head that may be wrong.
  void complete_with_head(std::uint16_t command_id, Status status, std::uint32_t head) {
    CompletionEntry& entry = view_.completions[completion_tail_];
    entry.result = 0;
    const Outcome outcome =
        Outcome::make(static_cast<std::uint16_t>(head), view_.id, command_id, phase_, status);
    // Release: the data and the result are there before the phase says so.
    AtomicRef<std::uint64_t, Scope::kSystem>(entry.outcome).store(outcome.word, kRelease);
    completion_tail_ = (completion_tail_ + 1) & mask_;
    if (completion_tail_ == 0) phase_ = !phase_;
    --in_flight_;
  }

  /// A command that gets no completion.
  void forget() { --in_flight_; }

 private:
  std::uint32_t room() const {
    const std::uint32_t unread = (completion_tail_ - completion_head_) & mask_;
    const std::uint32_t used = unread + in_flight_;
    return used < mask_ ? mask_ - used : 0;
  }

  // False for a head that cannot be.
  bool look_at_completion_head() {
    // Acquire: the reader is done with the entries before it gave them back.
    const std::uint32_t head = AtomicRef<std::uint32_t, Scope::kSystem>(*view_.head_doorbell).load(kAcquire);
    const std::uint32_t unread = (completion_tail_ - completion_head_) & mask_;
    if (head > mask_ || ((head - completion_head_) & mask_) > unread) return false;
    completion_head_ = head;
    return true;
  }

  ControllerQueueView view_;
  std::uint32_t mask_;
  std::uint32_t head_ = 0;             ///< Next submission to fetch.
  std::uint32_t completion_tail_ = 0;  ///< Next completion to post.
  std::uint32_t completion_head_ = 0;  ///< As last seen.
  std::uint32_t in_flight_ = 0;
  bool phase_ = true;  ///< Rings start zeroed, so the first round's tag is 1.
  bool failed_ = false;
};

}  // namespace bamquery
