#include "driver/native/nvme/admin_queue.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "driver/core/atomics.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kAbortNs = 500'000'000;
constexpr std::uint64_t kStatusNs = 1'000'000;  // Between looks at a register, each of which crosses the bus.

const char* verb(AdminOpcode opcode) {
  switch (opcode) {
    case AdminOpcode::kDeleteSubmissions:
      return "delete a submission queue";
    case AdminOpcode::kCreateSubmissions:
      return "create a submission queue";
    case AdminOpcode::kGetLogPage:
      return "get a log page";
    case AdminOpcode::kDeleteCompletions:
      return "delete a completion queue";
    case AdminOpcode::kCreateCompletions:
      return "create a completion queue";
    case AdminOpcode::kIdentify:
      return "identify";
    case AdminOpcode::kAbort:
      return "abort a command";
    case AdminOpcode::kSetFeatures:
      return "set a feature";
    case AdminOpcode::kGetFeatures:
      return "get a feature";
    case AdminOpcode::kAsynchronousEvent:
      return "await an event";
    case AdminOpcode::kDoorbellBuffers:
      return "use doorbells in memory";
  }
  return "do something";
}

// Most answers take some tens of microseconds; who waits longer leaves the processor to others.
void rest(std::uint32_t looks) {
  if (looks < 200) {
    pause(looks);
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 1000 ? 20 : 200));
  }
}

}  // namespace

AdminQueue::AdminQueue(Registers& registers, DmaSpace& space, std::string name)
    : registers_(registers),
      name_(std::move(name)),
      submissions_(space, kDepth * sizeof(SubmissionEntry), QueueAccess::kReads),
      completions_(space, kDepth * sizeof(CompletionEntry), QueueAccess::kWrites),
      data_(space, kPage, QueueAccess::kWrites) {}

void AdminQueue::renew() {
  const std::lock_guard lock(mutex_);
  submissions_.clear();
  completions_.clear();
  tail_ = head_ = 0;
  stuck_ = awaits_events_ = false;
  unread_event_.reset();
  shadows_ = nullptr;
}

void AdminQueue::use_doorbells(std::uint32_t stride, std::byte* shadows) {
  const std::lock_guard lock(mutex_);
  stride_ = stride;
  shadows_ = shadows;
  set_shadow(tail_doorbell_offset(0, stride_), tail_);
  set_shadow(head_doorbell_offset(0, stride_), head_ % kDepth);
}

void AdminQueue::set_shadow(std::uint32_t offset, std::uint32_t value) const {
  if (shadows_ == nullptr) return;
  // Release: as the register's own store.
  AtomicRef<std::uint32_t, Scope::kSystem>(*reinterpret_cast<std::uint32_t*>(shadows_ + offset))
      .store(value, kRelease);
}

void AdminQueue::submit(const AdminCommand& command, std::uint16_t command_id) {
  const SubmissionEntry entry = command.entry(command_id);
  std::memcpy(submissions_.data() + tail_ * sizeof entry, &entry, sizeof entry);
  tail_ = (tail_ + 1) % kDepth;
  const std::uint32_t offset = tail_doorbell_offset(0, stride_);
  set_shadow(offset, tail_);
  registers_.ring(offset, tail_);
}

bool AdminQueue::take(CompletionEntry& completion) {
  auto& place = *reinterpret_cast<CompletionEntry*>(completions_.data() + head_ % kDepth * sizeof completion);
  // Acquire: the rest of the entry, and what the command answered with.
  completion.outcome = AtomicRef<std::uint64_t, Scope::kSystem>(place.outcome).load(kAcquire);
  if (Outcome{completion.outcome}.phase() != (head_ / kDepth % 2 == 0)) return false;
  completion.result = place.result;
  ++head_;
  const std::uint32_t offset = head_doorbell_offset(0, stride_);
  set_shadow(offset, head_ % kDepth);
  registers_.ring(offset, head_ % kDepth);
  return true;
}

void AdminQueue::take_event(std::uint32_t result) {
  ++counts_.events;
  ControllerEvent event;
  event.type = result & 7;
  event.information = static_cast<std::uint8_t>(result >> 8);
  event.log_page = static_cast<std::uint8_t>(result >> 16);
  last_event_ = unread_event_ = event;
}

// What comes meanwhile for others is dealt with.
std::optional<AdminQueue::Answer> AdminQueue::await(std::uint16_t command_id, Deadline deadline) {
  std::uint64_t look_at_status = now_ns() + kStatusNs;
  for (std::uint32_t looks = 0;; ++looks) {
    CompletionEntry completion;
    if (take(completion)) {
      const Outcome outcome{completion.outcome};
      const auto result = static_cast<std::uint32_t>(completion.result);
      if (outcome.command_id() == command_id && outcome.submission_queue() == 0) {
        return Answer{outcome.status(), result};
      }
      if (outcome.command_id() == kEventId && awaits_events_) {
        awaits_events_ = false;
        if (outcome.status().ok()) take_event(result);
      } else if (outcome.command_id() != kAbortId) {
        ++counts_.strays;
      }
      if (!deadline.passed()) continue;
    }
    if (deadline.passed()) return std::nullopt;
    if (now_ns() >= look_at_status) {
      const ControllerStatus status = registers_.status();
      if (status.gone() || status.fatal()) return std::nullopt;
      look_at_status = now_ns() + kStatusNs;
    }
    rest(looks);
  }
}

void AdminQueue::fail(const AdminCommand& command, const std::string& why, Status status) {
  throw NvmeError(name_, name_ + ": " + why + " (asked to " + verb(command.opcode) + ")", command.nsid, 0,
                  status);
}

void AdminQueue::check_controller(const AdminCommand& command) {
  const ControllerStatus status = registers_.status();
  if (status.gone()) {
    stuck_ = true;
    fail(command, "the drive is gone: its registers read as ones", status::kQueueBroken);
  }
  if (status.fatal()) {
    stuck_ = true;
    fail(command, "the drive reports a fatal error (CSTS.CFS)", status::kQueueBroken);
  }
}

AdminQueue::Answer AdminQueue::execute_locked(const AdminCommand& command, Deadline deadline) {
  if (stuck_)
    fail(command, "the drive has left a command unanswered and has to be reset", status::kQueueBroken);
  next_id_ = next_id_ == kLastId ? 1 : static_cast<std::uint16_t>(next_id_ + 1);
  const std::uint16_t command_id = next_id_;
  ++counts_.commands;
  submit(command, command_id);
  std::optional<Answer> answer = await(command_id, deadline);
  if (!answer) {
    ++counts_.missed;
    check_controller(command);
    ++counts_.aborts;
    submit(admin::abort(0, command_id), kAbortId);
    answer = await(command_id, Deadline::in(kAbortNs));
    if (!answer) {
      stuck_ = true;
      check_controller(command);
      fail(command, "the drive does not answer, not even to a request to abort", status::kDeadlineMissed);
    }
  }
  if (!answer->status.ok()) ++counts_.errors;
  return *answer;
}

AdminQueue::Answer AdminQueue::execute(const AdminCommand& command, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  return execute_locked(command, deadline);
}

AdminQueue::Answer AdminQueue::execute(const std::function<AdminCommand(std::uint64_t page)>& command,
                                       Deadline deadline,
                                       const std::function<void(std::span<const std::byte>)>& look) {
  const std::lock_guard lock(mutex_);
  data_.clear();
  const Answer answer = execute_locked(command(data_.iova()), deadline);
  if (answer.status.ok()) look({data_.data(), data_.size()});
  return answer;
}

void AdminQueue::await_events() {
  const std::lock_guard lock(mutex_);
  if (stuck_ || awaits_events_) return;
  awaits_events_ = true;
  submit(admin::await_event(), kEventId);
}

void AdminQueue::acknowledge_events(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  CompletionEntry completion;
  while (!stuck_ && take(completion)) {
    const Outcome outcome{completion.outcome};
    if (outcome.command_id() == kEventId && awaits_events_) {
      awaits_events_ = false;
      if (outcome.status().ok()) take_event(static_cast<std::uint32_t>(completion.result));
    } else if (outcome.command_id() != kAbortId) {
      ++counts_.strays;
    }
    if (deadline.passed()) return;
  }
  if (stuck_ || !unread_event_) return;
  // Until its log page was read, an event of that type is not reported again.
  const std::uint8_t page = unread_event_->log_page;
  unread_event_.reset();
  if (page != 0) execute_locked(admin::get_log_page(page, 512, data_.iova()), deadline);
  if (!awaits_events_) {
    awaits_events_ = true;
    submit(admin::await_event(), kEventId);
  }
}

bool AdminQueue::stuck() const {
  const std::lock_guard lock(mutex_);
  return stuck_;
}

AdminCounts AdminQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::optional<ControllerEvent> AdminQueue::last_event() const {
  const std::lock_guard lock(mutex_);
  return last_event_;
}

}  // namespace bamquery
