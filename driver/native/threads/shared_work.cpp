#include "driver/native/threads/shared_work.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <new>

#include "driver/native/threads/thread_budget.hpp"
#include "driver/native/threads/thread_pool.hpp"

namespace bamquery {
namespace {

// What helpers know of the work. They may come when it is over, and nobody who asked for them is there.
class Sharing {
 public:
  Sharing(std::int64_t parts, const std::function<void(std::int64_t)>& work) : parts_(parts), work_(work) {}

  // Does parts until none is left.
  void run() noexcept {
    for (;;) {
      const std::int64_t part = next_.fetch_add(1, std::memory_order_relaxed);
      if (part >= parts_) return;
      try {
        work_(part);
      } catch (...) {
        next_.store(parts_, std::memory_order_relaxed);
        if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
      }
    }
  }

  // The same by another thread, unless it comes too late: parts that it would take, who waits would not know
  // of.
  void help() noexcept {
    int helping = helping_.load(std::memory_order_relaxed);
    do {
      if ((helping & kOver) != 0) return;
    } while (!helping_.compare_exchange_weak(helping, helping + 1, std::memory_order_relaxed));
    run();
    // What it has written is seen by who waits.
    if (helping_.fetch_sub(1, std::memory_order_release) - 1 == kOver) helping_.notify_all();
  }

  // Lets nobody begin any more, and waits for who has.
  void finish() {
    int helping = helping_.fetch_or(kOver, std::memory_order_acquire) | kOver;
    while (helping != kOver) {
      helping_.wait(helping, std::memory_order_acquire);
      helping = helping_.load(std::memory_order_acquire);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr int kOver = 1 << 30;

  const std::int64_t parts_;
  const std::function<void(std::int64_t)>& work_;  // looked at by none who comes too late
  std::atomic<std::int64_t> next_{0};
  std::atomic<int> helping_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace

int sharing_threads() {
  const ThreadBudget* const budget = ThreadBudget::current().get();
  return budget == nullptr ? 1 : 1 + budget->free();
}

void share_parts(std::int64_t parts, const std::function<void(std::int64_t)>& work) {
  ThreadBudget* const budget = parts > 1 ? ThreadBudget::current().get() : nullptr;
  const int helpers =
      budget == nullptr ? 0 : budget->borrow(static_cast<int>(std::min<std::int64_t>(parts, 1 << 16) - 1));
  if (helpers == 0) {
    for (std::int64_t part = 0; part < parts; ++part) work(part);
    return;
  }
  struct GiveBack {
    ThreadBudget* budget;
    int count;
    ~GiveBack() { budget->give_back(count); }
  } const back{budget, helpers};
  const auto sharing = std::make_shared<Sharing>(parts, work);
  try {
    int asked = 0;
    while (asked < helpers && run_in_pool([sharing] { sharing->help(); })) ++asked;
  } catch (const std::bad_alloc&) {
    // Those that were asked may be at work already: it goes on with them.
  }
  sharing->run();
  sharing->finish();
}

}  // namespace bamquery
