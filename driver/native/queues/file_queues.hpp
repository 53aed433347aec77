// The queue pairs through which this process reads files past the page cache, and the controller behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/native/controller/software_controller.hpp"
#include "driver/native/executors/direct_executor.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

/// A pool of queue pairs and a software controller without threads: whoever waits for a command carries it
/// out, so reading needs no thread more than the reader's. Shared by all files whose LBAs have so many bytes.
class FileQueues {
 public:
  /// Most bytes of a command.
  static constexpr std::uint32_t kSlotBytes = 256 << 10;

  /// The process's, made at first use. Never destroyed, as threads may still read when static objects go. A
  /// forked child has its own: the parent's rings are not for it.
  static FileQueues& of_process(DirectPath path, std::uint32_t lba_bytes);

  /// Puts new ones in the place of these, none of whose queue pairs work any more. Once.
  void replace();

  FileQueues(DirectPath path, std::uint32_t lba_bytes);
  FileQueues(const FileQueues&) = delete;
  FileQueues& operator=(const FileQueues&) = delete;

  std::uint32_t lba_bytes() const { return memory_.shape().block_bytes; }
  /// How the kernel is asked: see AsyncExecutor::path().
  std::string io_path() const;

  SoftwareController& controller() { return controller_; }
  const QueuePoolView& pool() const { return pool_; }

 private:
  ControllerOptions options();

  DirectPath path_;
  mutable std::mutex path_mutex_;
  std::string io_path_;
  QueueMemory memory_;
  std::vector<std::byte> pool_memory_;
  QueuePoolView pool_;
  SoftwareController controller_;
};

/// One file as a namespace of the process's queues, whichever those are now.
class QueueNamespace {
 public:
  struct Place {
    FileQueues* queues;
    std::uint32_t nsid;
  };

  QueueNamespace(std::string path, DirectPath io_path, std::uint32_t lba_bytes)
      : path_(std::move(path)), io_path_(io_path), lba_bytes_(lba_bytes) {}
  ~QueueNamespace();
  QueueNamespace(const QueueNamespace&) = delete;
  QueueNamespace& operator=(const QueueNamespace&) = delete;

  /// Added at first use, and again where the queues are new: after a fork, or where none worked any more.
  /// StorageError.
  Place place();

 private:
  std::string path_;
  DirectPath io_path_;
  std::uint32_t lba_bytes_;
  std::mutex mutex_;
  Place place_{};
  int process_ = 0;            ///< Whose queues they are.
  std::vector<Place> former_;  ///< Reads may still be under way there.
};

/// A queue pair, for one thread.
class QueueLease {
 public:
  /// Waits for one; `status()` says if there is none.
  QueueLease(FileQueues& queues, Deadline deadline);
  ~QueueLease();
  QueueLease(const QueueLease&) = delete;
  QueueLease& operator=(const QueueLease&) = delete;

  Status status() const { return status_; }
  QueuePair<Scope::kBlock>& pair() { return *pair_; }

  /// Carries out what was issued; sleeps up to `wait_ns` where nothing has ended.
  void serve(std::uint64_t wait_ns);

 private:
  bool exhausted() const;

  struct alignas(16) Flags {
    std::byte bytes[16];
  };

  FileQueues& queues_;
  std::vector<Flags> flags_;  ///< The lessee's copy.
  BlockLease lease_;
  Status status_;
  std::optional<QueuePair<Scope::kBlock>> pair_;
};

}  // namespace bamquery
