// Commands of one controller thread that an executor carries out meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/native/controller/command_check.hpp"
#include "driver/native/controller/faults.hpp"
#include "driver/native/controller/namespace.hpp"
#include "driver/native/executors/async_executor.hpp"

namespace bamquery {

struct ServedQueue;

/// A command's memory may lie in several pieces, each of which is an operation; there may be more operations
/// than the executor takes at once.
class AsyncCommands {
 public:
  struct Ended {
    ServedQueue* queue;
    std::uint16_t command_id;
    Opcode opcode;
    Status status;
    std::uint32_t bytes;
    Effect effect;
  };

  /// The executor is made when the first command needs it, for so many operations at once.
  AsyncCommands(AsyncExecutorFactory factory, std::uint32_t depth)
      : factory_(std::move(factory)), depth_(depth) {}

  bool empty() const { return running_ == 0; }

  /// Takes a command that was found valid. `bytes` of the file from `offset` on lie in the segments.
  void start(const Ended& command, Namespace& target, std::uint64_t offset,
             std::span<const Segment> segments);

  /// Begins what waits for room, and calls ended(const Ended&) for what is done. Where nothing is, sleeps for
  /// it up to `wait_ns`. Returns how many operations ended.
  template <typename OnEnded>
  std::size_t reap(std::uint64_t wait_ns, OnEnded ended) {
    const std::size_t count = collect(wait_ns);
    for (const std::uint32_t place : done_) {
      ended(static_cast<const Ended&>(commands_[place].ended));
      free(place);
    }
    done_.clear();
    return count;
  }

  /// Drops the operations that were not begun: their commands end with `status`.
  void drop_waiting(Status status);

  /// How the executor works; empty before there is one.
  std::string path() const { return executor_ == nullptr ? "" : executor_->path(); }

 private:
  struct Command {
    Ended ended;
    std::uint32_t operations;  ///< Not ended.
    std::shared_ptr<Namespace> target;
  };

  std::size_t collect(std::uint64_t wait_ns);
  void submit_waiting();
  void end_operation(std::uint32_t place, Status status);
  void free(std::uint32_t place);
  void begin(std::uint32_t place, std::span<const Segment> segments, std::uint64_t offset);

  AsyncExecutorFactory factory_;
  std::uint32_t depth_;
  std::unique_ptr<AsyncExecutor> executor_;
  std::vector<Command> commands_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> done_;
  std::deque<AsyncOperation> waiting_;
  std::uint32_t running_ = 0;  ///< Commands.
};

}  // namespace bamquery
