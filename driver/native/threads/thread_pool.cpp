#include "driver/native/threads/thread_pool.hpp"

#include <pthread.h>

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

}  // namespace bamquery
