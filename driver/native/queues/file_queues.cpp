#include "driver/native/queues/file_queues.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "driver/native/errors.hpp"
#include "driver/native/executors/io_uring.hpp"

namespace bamquery {
namespace {

constexpr std::uint32_t kSlots = 128;

// What a pool must lie on a multiple of.
constexpr std::size_t kCacheLines = 128;

// Two for each thread that can run, since some of those that read wait.
std::uint32_t pairs() { return std::clamp(2 * std::thread::hardware_concurrency(), 8u, 32u); }

QueueShape shape(std::uint32_t lba_bytes) {
  QueueShape shape;
  shape.leased_pairs = pairs();
  shape.shared_pairs = 0;
  shape.depth = 2 * kSlots;
  shape.slots = kSlots;
  shape.slot_bytes = FileQueues::kSlotBytes;
  shape.block_bytes = lba_bytes;
  return shape;
}

// By path and LBA size.
using Table = std::array<std::array<std::atomic<FileQueues*>, 2>, 3>;
Table table;

std::atomic<FileQueues*>& entry(DirectPath path, std::uint32_t lba_bytes) {
  return table[static_cast<std::size_t>(path)][lba_bytes == 512 ? 0 : 1];
}

void forget_all() {
  for (auto& row : table) {
    for (auto& queues : row) queues.store(nullptr, std::memory_order_relaxed);  // a child has one thread
  }
}

// Between looks where nothing sleeps for us: a command is held back, or lost.
constexpr std::chrono::microseconds kNap{100};

// How long closing a file waits for commands that were given up.
constexpr std::uint64_t kRemoveNs = 100'000'000;

}  // namespace

FileQueues::FileQueues(DirectPath path, std::uint32_t lba_bytes)
    : path_(path),
      io_path_(make_direct_executor(1, path)->path()),
      memory_(shape(lba_bytes)),
      pool_memory_(memory_.pool_bytes() + kCacheLines),
      controller_(memory_, options()) {
  // Huge pages would give each scattered block's slot one.
  madvise(memory_.address(), memory_.size(), MADV_NOHUGEPAGE);
  void* start = pool_memory_.data();
  std::size_t room = pool_memory_.size();
  std::align(kCacheLines, memory_.pool_bytes(), start, room);
  pool_ = memory_.make_pool({static_cast<std::byte*>(start), room});
}

ControllerOptions FileQueues::options() {
  ControllerOptions options;
  options.threads = 0;
  options.executor_depth = kSlots;
  options.executors = [this](std::uint32_t depth) {
    auto executor = make_direct_executor(depth, path_);
    const std::lock_guard lock(path_mutex_);
    if (io_path_ == "io_uring") io_path_ = executor->path();  // the worst of all
    return executor;
  };
  return options;
}

FileQueues& FileQueues::of_process(DirectPath path, std::uint32_t lba_bytes) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, forget_all); });
  auto& known = entry(path, lba_bytes);
  // Acquire, here and below: pairs with the exchange that published it.
  FileQueues* current = known.load(std::memory_order_acquire);
  if (current == nullptr) {
    auto fresh = std::make_unique<FileQueues>(path, lba_bytes);
    if (known.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) {
      current = fresh.release();
    }
  }
  return *current;
}

void FileQueues::replace() {
  auto fresh = std::make_unique<FileQueues>(path_, lba_bytes());
  FileQueues* expected = this;
  // Release: the fresh ones are made.
  if (entry(path_, lba_bytes()).compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel)) {
    fresh.release();
  }
}

std::string FileQueues::io_path() const {
  const std::lock_guard lock(path_mutex_);
  return io_path_;
}

QueueNamespace::~QueueNamespace() {
  // Not a parent's: its queues are not ours.
  if (place_.queues == nullptr || process_ != getpid()) return;
  former_.push_back(place_);
  for (const Place& place : former_) {
    place.queues->controller().remove_namespace(place.nsid, Deadline::in(kRemoveNs));
  }
}

QueueNamespace::Place QueueNamespace::place() {
  const std::lock_guard lock(mutex_);
  if (process_ != getpid()) {
    former_.clear();
    place_ = {};
  }
  try {
    FileQueues& current = FileQueues::of_process(io_path_, lba_bytes_);
    if (place_.queues == &current) return place_;
    auto file = Namespace::direct_file(path_, lba_bytes_, false);
    if (place_.queues != nullptr) former_.push_back(place_);
    place_ = {&current, current.controller().add_namespace(std::move(file))};
    process_ = getpid();
  } catch (const IoUringUnavailable& error) {
    throw StorageError(path_, error.what());
  }
  return place_;
}

QueueLease::QueueLease(FileQueues& queues, Deadline deadline)
    : queues_(queues),
      flags_(queues.pool().flags_bytes / sizeof(Flags)),
      lease_(queues.pool(), flags_[0].bytes) {
  status_ = lease_.begin(deadline);
  if (status_.ok()) pair_.emplace(lease_.pair());
}

QueueLease::~QueueLease() {
  if (!status_.ok()) return;
  if (exhausted()) {
    // Then the pool keeps it. Relaxed: read by the end of this lease, in this thread.
    AtomicRef<std::uint32_t, Scope::kBlock>(pair_->flags().header().broken).store(1, kRelaxed);
  }
  // Nothing is pending: who gave commands up has put them into quarantine.
  lease_.end(Deadline{0});
}

// Most of its slots wait for completions that are long overdue.
bool QueueLease::exhausted() const {
  QueueHeader& header = pair_->flags().header();
  const std::uint32_t missed = AtomicRef<std::uint32_t, Scope::kBlock>(header.missed).load(kRelaxed);
  const std::uint32_t late = AtomicRef<std::uint32_t, Scope::kBlock>(header.late).load(kRelaxed);
  return missed - late > pair_->view().slots / 2;  // relaxed: statistics, of this thread
}

void QueueLease::serve(std::uint64_t wait_ns) {
  const bool worked = queues_.controller().service(pair_->view().id - 1u, wait_ns);
  if (!worked && wait_ns > 0) std::this_thread::sleep_for(kNap);
}

}  // namespace bamquery
