// An NVMe controller made of CPU threads: it executes what is submitted to the queue pairs of a QueueMemory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "driver/native/controller/controller.hpp"
#include "driver/native/controller/directory.hpp"
#include "driver/native/controller/drive_profile.hpp"
#include "driver/native/controller/faults.hpp"
#include "driver/native/controller/namespace.hpp"
#include "driver/native/controller/statistics.hpp"
#include "driver/native/controller/worker.hpp"
#include "driver/native/executors/async_executor.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

struct ControllerOptions {
  /// Negative: half of the processors, 8 at most. 0: none; whoever waits calls service().
  int threads = -1;
  CopyStores stores = CopyStores::kCached;
  std::uint32_t max_transfer_bytes = 2u << 20;  ///< MDTS
  /// What carries out commands on direct files, and flushes; none: make_direct_executor().
  AsyncExecutorFactory executors;
  std::uint32_t executor_depth = 256;  ///< Operations in flight, of each thread.
};

struct ControllerStatistics {
  ControllerCounts counts;
  std::vector<double> thread_seconds;     ///< CPU time of each thread since it was started.
  std::uint32_t failed_queues = 0;        ///< Doorbells took values that they cannot have.
  std::vector<std::uint64_t> fired;       ///< How often each rule of the faults at hand did.
  std::vector<std::string> direct_paths;  ///< Of each thread that has used one: "io_uring", "preadv: ...".
};

/// Threads never call CUDA, take no signals, and look at doorbells only while somebody has declared activity,
/// or a moment after wake(): a controller without work uses no processor. All members may be called from any
/// thread, except as noted.
class SoftwareController final : public Controller {
 public:
  /// The rings must be fresh. The memory outlives the controller. Does not start it.
  SoftwareController(QueueMemory& memory, ControllerOptions options);
  /// Stops, and waits for what the kernel has begun, however long that takes.
  ~SoftwareController() override;

  /// Gives a namespace a number, from 1 on. Numbers are used again, late.
  std::uint32_t add_namespace(std::shared_ptr<Namespace> added);

  /// Commands get kInvalidNamespace from now on. Waits until none is executing any more: then its file is
  /// closed, or will be with the last reference. False at the deadline: then that comes later.
  /// std::invalid_argument if there is no such namespace.
  bool remove_namespace(std::uint32_t nsid, Deadline deadline);

  /// Null if there is none.
  std::shared_ptr<Namespace> find_namespace(std::uint32_t nsid) const;
  std::optional<NamespaceShape> shape_of(std::uint32_t nsid) const override;

  /// Makes new commands go wrong by these rules, instead of those before; none: none do.
  void set_faults(std::vector<FaultRule> rules, std::uint64_t seed);

  /// New commands take as long as with so many of these drives; none: as long as they take.
  void set_profile(const std::optional<DriveProfile>& profile, std::uint32_t drives = 1);

  /// Starts the threads; nothing if they run. std::system_error if none can be had.
  void start();

  /// Answers all that was submitted with kQueueDeleted and ends the threads; they may be started again. False
  /// if they have not ended at the deadline.
  bool stop(Deadline deadline) override;

  /// std::logic_error while threads run.
  void recreate_queues() override;

  /// Always without threads.
  bool running() const;
  std::uint32_t threads() const { return threaded_ ? static_cast<std::uint32_t>(serves_.size()) : 0; }

  /// Makes threads look now, however deep they sleep.
  void wake() override;

  /// Without threads: executes what is submitted to the pair, or to all pairs, unless another thread is at
  /// it. Sleeps up to `wait_ns` where a disk has to answer first. False if there was nothing to do.
  bool service(std::uint32_t pair, std::uint64_t wait_ns = 0) override;
  bool service();

  ControllerStatistics statistics() const;

 private:
  // A worker and who drives it.
  struct Service {
    Service(std::span<const ControllerQueueView> queues, DirectoryBoard& board,
            const ControllerWorker::Options& options)
        : worker(queues, board, options) {}

    ControllerWorker worker;
    std::atomic<bool> taken{false};  ///< Somebody drives it; without threads only.
    std::thread thread;
    bool ended = true;                     ///< Under mutex_.
    std::atomic<std::uint64_t> cpu_ns{0};  ///< Of threads that have ended.
    std::string path;                      ///< Under mutex_: how its executor works.
  };

  void change_activity(int by) override;
  void run(Service& service);
  bool rest(Service& service, std::uint32_t idle_looks, std::uint64_t seen);
  bool join(Deadline deadline);
  bool drive(Service& service, std::uint64_t wait_ns);

  QueueMemory& memory_;
  DirectoryBoard board_;
  bool threaded_;
  std::vector<std::unique_ptr<Service>> serves_;

  mutable std::mutex mutex_;
  struct Signals {
    std::condition_variable rouse;  ///< Sleeping threads: epoch_, activity_ or stopping_ changed.
    std::condition_variable ended;
  };
  /// Apart, as a forked child must not destroy what the parent's threads sleep on.
  std::unique_ptr<Signals> signals_ = std::make_unique<Signals>();
  std::atomic<bool> stopping_{false};
  std::uint64_t epoch_ = 0;  ///< Calls of wake().
  int activity_ = 0;
  int process_ = 0;  ///< Whose threads they are: a forked child has none.
  bool started_ = false;

  std::mutex namespaces_;  ///< Numbers.
  std::vector<std::uint32_t> free_numbers_;
};

}  // namespace bamquery
