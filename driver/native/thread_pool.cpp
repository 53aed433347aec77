#include "thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace bamquery {
namespace {

constexpr std::size_t kMostThreads = 256;

// One call of run_parallel. Helpers that come late find no task left and never touch the caller's work.
struct Job {
  Job(std::int64_t tasks, const std::function<void(std::int64_t)>& function) : count(tasks), work(function) {}

  void take_part() {
    std::int64_t finished = 0;
    // Relaxed: the counter only hands out numbers; what tasks produce is published by `mutex` below.
    for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < count; ++finished)
      work(task);
    if (finished == 0) return;
    const std::lock_guard lock(mutex);
    done += finished;
    if (done == count) all_done.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex);
    all_done.wait(lock, [this] { return done == count; });
  }

  const std::int64_t count;
  const std::function<void(std::int64_t)>& work;
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::condition_variable all_done;
  std::int64_t done = 0;
};

class Pool {
 public:
  bool run(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_ <= waiting_.size() && threads_ < kMostThreads) start_thread();
      if (threads_ == 0) return false;
      waiting_.push_back(std::move(work));
    }
    more_.notify_one();
    return true;
  }

 private:
  // Counted as idle from the start, so that one call does not start more threads than it has work for. Where
  // no more are to be had, those that are do the work.
  void start_thread() {
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      return;
    }
    ++threads_;
    ++idle_;
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      more_.wait(lock, [this] { return !waiting_.empty(); });
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      --idle_;
      lock.unlock();
      work();
      work = nullptr;  // what it holds is given back before the next wait
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
};

// Never destroyed: its threads may still run when static objects are. A forked child has none of the threads
// and perhaps a locked mutex, so it gets a pool of its own.
std::atomic<Pool*> shared_pool{nullptr};

Pool& pool() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { shared_pool = nullptr; }); });
  Pool* current = shared_pool.load(std::memory_order_acquire);  // pairs with the exchange that published it
  if (current == nullptr) {
    auto fresh = std::make_unique<Pool>();
    if (shared_pool.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) {
      current = fresh.release();
    }
  }
  return *current;
}

}  // namespace

bool run_in_pool(std::function<void()> work) { return pool().run(std::move(work)); }

void run_parallel(int width, std::int64_t count, const std::function<void(std::int64_t)>& work) {
  if (count == 0) return;
  const auto job = std::make_shared<Job>(count, work);
  for (std::int64_t helpers = std::min<std::int64_t>(width, count) - 1; helpers > 0; --helpers) {
    if (!run_in_pool([job] { job->take_part(); })) break;
  }
  job->take_part();
  job->wait();
}

}  // namespace bamquery
