#include "engine/native/keys/row_places.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

// Places that are looked at before it is asked whether they are known to be in no order.
constexpr std::int64_t kStep = 4096;

// Whether each of these places, but the first, is greater than the one before it.
bool ascend(const std::int64_t* places, std::int64_t count) {
  bool all = true;
  for (std::int64_t i = 1; i < count; ++i) all &= places[i] > places[i - 1];
  return all;
}

}  // namespace

PlaceOrder order_of_places(std::span<const std::int64_t> places) {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::atomic<bool> all_ascend = true;
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    const std::int64_t end = first + count;
    for (std::int64_t start = first; start < end && all_ascend; start += kStep) {
      // From the last place of the step before on, which may be another thread's.
      const std::int64_t from = std::max<std::int64_t>(start - 1, 0);
      if (!ascend(places.data() + from, std::min(start + kStep, end) - from)) all_ascend = false;
    }
  });
  if (!all_ascend) return PlaceOrder::kNone;
  // Of as many different whole numbers as there are from the first to the last each is the next one.
  const bool is_run = rows == 0 || places.back() - places.front() == rows - 1;
  return is_run ? PlaceOrder::kRun : PlaceOrder::kAscend;
}

bool set_flags(std::span<const std::int64_t> places, std::span<std::uint8_t> flags) {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::atomic<bool> is_right = true;
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (const std::int64_t row :
         places.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))) {
      const auto place = static_cast<std::uint64_t>(row);
      if (place >= flags.size()) {
        is_right = false;
        return;
      }
      // Nothing else is handed over by it: whoever reads them waits for the threads.
      std::atomic_ref(flags[place]).store(1, std::memory_order_relaxed);
    }
  });
  return is_right;
}

}  // namespace bamquery
