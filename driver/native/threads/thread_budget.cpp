#include "driver/native/threads/thread_budget.hpp"

#include <utility>

namespace bamquery {
namespace {

thread_local std::shared_ptr<ThreadBudget> own;

}  // namespace

void ThreadBudget::begin(std::shared_ptr<ThreadBudget> budget) {
  end();
  own = std::move(budget);
  own->free_.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadBudget::end() {
  if (own) own->give_back(1);
  own.reset();
}

const std::shared_ptr<ThreadBudget>& ThreadBudget::current() { return own; }

int ThreadBudget::borrow(int most) {
  int found = free_.load(std::memory_order_relaxed);
  int taken = 0;
  do {
    taken = std::clamp(found, 0, std::max(most, 0));
  } while (taken > 0 && !free_.compare_exchange_weak(found, found - taken, std::memory_order_relaxed));
  return taken;
}

}  // namespace bamquery
