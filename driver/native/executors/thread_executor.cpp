#include "driver/native/executors/thread_executor.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/native/executors/file_transfer.hpp"
#include "driver/native/threads/thread_pool.hpp"

namespace bamquery {
namespace {

// More threads than this cost more than they bring.
constexpr std::uint32_t kMostWorkers = 64;

std::int64_t call(const FileTransfer& transfer) {
  const AsyncOperation& operation = transfer.operation();
  const iovec piece{transfer.memory(), transfer.bytes()};
  std::int64_t result = 0;
  switch (operation.opcode) {
    case Opcode::kRead:
      result = preadv(operation.file, &piece, 1, transfer.offset());
      break;
    case Opcode::kWrite:
      result = pwritev(operation.file, &piece, 1, transfer.offset());
      break;
    case Opcode::kFlush:
      result = fdatasync(operation.file);
      break;
  }
  return result < 0 ? -errno : result;
}

AsyncOutcome carry_out(FileTransfer transfer) {
  std::optional<Status> status = transfer.refused();
  while (!status) status = transfer.advance(call(transfer));
  return {transfer.operation().tag, *status};
}

// What the executor and its workers share; workers that come late find it after the executor is gone.
struct Work {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<FileTransfer> waiting;
  std::deque<AsyncOutcome> ended;
  std::uint32_t workers = 0;  ///< Posted or running.
  std::uint32_t busy = 0;     ///< Inside a system call, or about to be.

  void run() {
    std::unique_lock lock(mutex);
    while (!waiting.empty()) run_one(lock);
    --workers;
  }

  void run_one(std::unique_lock<std::mutex>& lock) {
    const FileTransfer transfer = waiting.front();
    waiting.pop_front();
    ++busy;
    lock.unlock();
    const AsyncOutcome outcome = carry_out(transfer);
    lock.lock();
    --busy;
    ended.push_back(outcome);
    changed.notify_all();
  }
};

class ThreadExecutor final : public AsyncExecutor {
 public:
  ThreadExecutor(std::uint32_t depth, std::string why)
      : depth_(std::max(depth, 1u)), why_(std::move(why)), work_(std::make_shared<Work>()) {}

  // Buffers and files are in use until the last system call has returned.
  ~ThreadExecutor() override {
    std::unique_lock lock(work_->mutex);
    work_->waiting.clear();
    work_->changed.wait(lock, [this] { return work_->busy == 0; });
  }

  bool start(const AsyncOperation& operation) override {
    const std::lock_guard lock(work_->mutex);
    if (in_flight_ == depth_) return false;
    work_->waiting.push_back(FileTransfer(operation));
    ++in_flight_;
    if (work_->workers < std::min(depth_, kMostWorkers)) {
      ++work_->workers;
      if (!run_in_pool([work = work_] { work->run(); })) --work_->workers;
    }
    return true;
  }

  std::size_t reap(std::span<AsyncOutcome> outcomes, std::uint64_t wait_ns) override {
    std::unique_lock lock(work_->mutex);
    std::deque<AsyncOutcome>& ended = work_->ended;
    if (wait_ns > 0 && in_flight_ > 0 && ended.empty()) {
      if (work_->workers == 0) {
        work_->run_one(lock);  // no thread is to be had: then in this one
      } else {
        work_->changed.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return !ended.empty(); });
      }
    }
    const std::size_t count = std::min(outcomes.size(), ended.size());
    std::copy_n(ended.begin(), count, outcomes.begin());
    ended.erase(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(count));
    in_flight_ -= static_cast<std::uint32_t>(count);
    return count;
  }

  std::uint32_t in_flight() const override { return in_flight_; }

  std::string path() const override { return "preadv: " + why_; }

 private:
  const std::uint32_t depth_;
  const std::string why_;
  const std::shared_ptr<Work> work_;
  std::uint32_t in_flight_ = 0;
};

}  // namespace

std::unique_ptr<AsyncExecutor> make_thread_executor(std::uint32_t depth, std::string why) {
  return std::make_unique<ThreadExecutor>(depth, std::move(why));
}

}  // namespace bamquery
