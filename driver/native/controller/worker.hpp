// Executes the commands of some queues, in whichever thread calls: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/controller/async_commands.hpp"
#include "driver/native/controller/command_check.hpp"
#include "driver/native/controller/copy_batch.hpp"
#include "driver/native/controller/delayed_commands.hpp"
#include "driver/native/controller/directory.hpp"
#include "driver/native/controller/faults.hpp"
#include "driver/native/controller/queue.hpp"
#include "driver/native/controller/statistics.hpp"

namespace bamquery {

/// A queue pair and what the controller knows of it.
struct ServedQueue {
  explicit ServedQueue(const ControllerQueueView& view) : ring(view) {}

  ControllerQueue ring;
  HeldCommands held;
  std::uint64_t ordinal = 0;  ///< Commands fetched so far.
  bool failure_counted = false;
};

class ControllerWorker {
 public:
  struct Options {
    TransferLimits limits;
    CopyStores stores = CopyStores::kCached;
    AsyncExecutorFactory executors;
    std::uint32_t executor_depth = 256;
  };

  ControllerWorker(std::span<const ControllerQueueView> queues, DirectoryBoard& board,
                   const Options& options);

  /// One look at every queue; false if there was nothing to do.
  bool look();

  /// Sleeps for an executor's outcome, where some is to come, up to `wait_ns`; true if one came.
  bool await_executor(std::uint64_t wait_ns);

  /// Something was fetched and is not answered: an executor has it, or its time has not come.
  bool executing() const { return !async_.empty(); }
  std::uint64_t next_due_ns() const { return next_due_ns_; }

  /// Answers all that was submitted with kQueueDeleted, except for what an executor has begun, for which it
  /// waits; false if that was not over at the deadline.
  bool abort(Deadline deadline);

  /// Takes all queues as new, with rings of zeros. Nothing is executing.
  void forget_queues();

  /// Queue pairs whose doorbells took values that they cannot have.
  std::uint32_t failed_queues() const { return static_cast<std::uint32_t>(failed_queues_.value()); }
  ControllerCounts counts() const { return tallies_.counts(); }
  std::string executor_path() const { return async_.path(); }

 private:
  // Enough to keep memory busy, few enough for the lines asked for to stay near.
  static constexpr std::uint32_t kBatch = 64;

  struct Planned {
    std::uint16_t command_id;
    std::uint8_t opcode;
    bool asynchronous;  ///< An executor answers it.
    Status status;
    std::uint32_t bytes;
  };

  bool serve(ServedQueue& queue, const Directory& directory);
  std::uint32_t fetch_shaped(ServedQueue& queue, const Directory& directory);
  std::uint32_t fetch_held(ServedQueue& queue, std::uint64_t now);
  template <bool kShaped>
  void execute(ServedQueue& queue, const Directory& directory, std::uint32_t count);
  template <bool kShaped>
  Planned plan(ServedQueue& queue, const Directory& directory, std::uint32_t place);
  void plan_copies(const NamespaceView& view, const Extent& extent, bool writes,
                   std::span<const Segment> segments, std::uint32_t place);
  void copy();
  void copy_singly();
  template <bool kShaped>
  void post(ServedQueue& queue, std::uint32_t first, std::uint32_t end);
  void finish(ServedQueue& queue, const Planned& planned, const Effect& effect);
  void count(const Planned& planned);
  void count_failure(ServedQueue& queue);
  void publish_counts();
  bool reap(std::uint64_t wait_ns);

  std::vector<ServedQueue> queues_;
  DirectoryBoard::Reader reader_;
  Options options_;
  AsyncCommands async_;
  std::uint64_t next_due_ns_ = ~0ull;
  Tally failed_queues_;

  // The batch at hand.
  std::array<SubmissionEntry, kBatch> entries_;
  std::array<Effect, kBatch> effects_;
  std::array<Planned, kBatch> planned_;
  std::vector<Segment> segments_;  ///< Of one command.
  std::vector<CopyItem> items_;    ///< Fixed in size: room for a batch of small commands or one large one.
  std::uint32_t item_count_ = 0;
  const std::byte* guarded_begin_ = nullptr;  ///< Span of all mapped files that the items touch.
  const std::byte* guarded_end_ = nullptr;
  ControllerCounts counts_;

  ControllerTallies tallies_;
};

}  // namespace bamquery
