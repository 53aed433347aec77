#include "driver/native/threads/thread_budget.hpp"

#include <utility>

namespace bamquery {
namespace {

// Owned, but by no destructor: who ends a thread need not know of it, as `end` has been called before.
thread_local std::shared_ptr<ThreadBudget>* own = nullptr;
const std::shared_ptr<ThreadBudget> none;

}  // namespace

void ThreadBudget::begin(std::shared_ptr<ThreadBudget> budget) {
  end();
  budget->free_.fetch_sub(1, std::memory_order_relaxed);
  own = new std::shared_ptr<ThreadBudget>(std::move(budget));
}

void ThreadBudget::end() {
  if (own == nullptr) return;
  (*own)->give_back(1);
  delete own;
  own = nullptr;
}

const std::shared_ptr<ThreadBudget>& ThreadBudget::current() { return own == nullptr ? none : *own; }

int ThreadBudget::borrow(int most) {
  int found = free_.load(std::memory_order_relaxed);
  int taken = 0;
  do {
    taken = std::clamp(found, 0, std::max(most, 0));
  } while (taken > 0 && !free_.compare_exchange_weak(found, found - taken, std::memory_order_relaxed));
  return taken;
}

}  // namespace bamquery
