// Threads that one query may use at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

namespace bamquery {

/// Counts threads that work for a query, so that those that nobody needs can help with what one of them does.
/// The counts are for many threads at once; a query has more of them than its number for moments only.
class ThreadBudget {
 public:
  explicit ThreadBudget(int threads) : free_(std::max(threads, 1)) {}

  /// The calling thread works for the query until `end`.
  static void begin(std::shared_ptr<ThreadBudget> budget);
  /// It does not any more, or waits for others that do.
  static void end();

  /// That of the query that the calling thread works for; null where it works for none.
  static const std::shared_ptr<ThreadBudget>& current();

  /// Threads that are free now, or none.
  int free() const { return std::max(free_.load(std::memory_order_relaxed), 0); }

  /// Takes up to `most` of those that are free, and says how many.
  int borrow(int most);
  void give_back(int count) { free_.fetch_add(count, std::memory_order_relaxed); }

 private:
  std::atomic<int> free_;
};

}  // namespace bamquery
