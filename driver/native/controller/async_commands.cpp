#include "driver/native/controller/async_commands.hpp"

#include <array>
#include <exception>

namespace bamquery {
namespace {

// The kernel asks the same of reads and writes past the page cache.
bool aligned(std::span<const Segment> segments) {
  for (const Segment& segment : segments) {
    if (reinterpret_cast<std::uintptr_t>(segment.memory) % kMinBlockBytes != 0) return false;
    if (segment.bytes % kMinBlockBytes != 0) return false;
  }
  return true;
}

}  // namespace

void AsyncCommands::start(const Ended& command, Namespace& target, std::uint64_t offset,
                          std::span<const Segment> segments) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(commands_.size()));
    commands_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  commands_[place] = {command, 0, target.shared_from_this()};
  target.begin_operation();
  ++running_;
  try {
    if (executor_ == nullptr) executor_ = factory_(depth_);
    if (!aligned(segments)) {
      commands_[place].ended.status = status::kInvalidField;
      done_.push_back(place);
      return;
    }
    begin(place, segments, offset);
  } catch (const std::exception&) {
    // No descriptor or memory left for an executor: the next command may find some.
    commands_[place].ended.status = status::kInternalError;
    done_.push_back(place);
  }
}

void AsyncCommands::begin(std::uint32_t place, std::span<const Segment> segments, std::uint64_t offset) {
  const Command& command = commands_[place];
  const Namespace& target = *command.target;
  AsyncOperation operation{};
  operation.opcode = command.ended.opcode;
  operation.file = target.file();
  operation.file_bytes = static_cast<std::int64_t>(target.view().data_bytes);
  operation.offset = static_cast<std::int64_t>(offset);
  operation.tag = place;
  if (operation.opcode == Opcode::kFlush) {
    waiting_.push_back(operation);
    commands_[place].operations = 1;
  } else {
    for (const Segment& segment : segments) {
      operation.memory = segment.memory;
      operation.bytes = segment.bytes;
      waiting_.push_back(operation);
      operation.offset += segment.bytes;
    }
    commands_[place].operations = static_cast<std::uint32_t>(segments.size());
    if (segments.empty()) done_.push_back(place);  // a write torn before its first byte
  }
  submit_waiting();
}

void AsyncCommands::submit_waiting() {
  while (!waiting_.empty() && executor_->start(waiting_.front())) waiting_.pop_front();
}

std::size_t AsyncCommands::collect(std::uint64_t wait_ns) {
  if (executor_ == nullptr) return done_.size();
  submit_waiting();
  std::array<AsyncOutcome, 64> outcomes;
  const std::size_t count = executor_->reap(outcomes, done_.empty() ? wait_ns : 0);
  for (std::size_t i = 0; i < count; ++i) {
    end_operation(static_cast<std::uint32_t>(outcomes[i].tag), outcomes[i].status);
  }
  submit_waiting();
  return count + done_.size();
}

void AsyncCommands::end_operation(std::uint32_t place, Status status) {
  Command& command = commands_[place];
  if (command.ended.status.ok()) command.ended.status = status;
  if (--command.operations == 0) done_.push_back(place);
}

void AsyncCommands::free(std::uint32_t place) {
  commands_[place].target->end_operation();
  commands_[place].target.reset();
  free_.push_back(place);
  --running_;
}

void AsyncCommands::drop_waiting(Status status) {
  for (const AsyncOperation& operation : waiting_) {
    end_operation(static_cast<std::uint32_t>(operation.tag), status);
  }
  waiting_.clear();
}

}  // namespace bamquery
