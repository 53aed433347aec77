// Rows shared out among threads that live no longer than one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace bamquery {

/// How many threads are worth it: each has a part of a millisecond's work at least, as starting one takes
/// some of that.
inline std::int64_t worth_threads(std::int64_t items, std::int64_t threads) {
  constexpr std::int64_t kLeast = 1 << 16;
  return std::clamp<std::int64_t>(items / kLeast, 1, std::max<std::int64_t>(threads, 1));
}

/// Calls `work(share, first, count)` for each of `shares` parts of the items, each a multiple of `block` but
/// for the last one, all at once; the calling thread has the first. `work` throws nothing.
template <typename Work>
void share_out(std::int64_t items, std::int64_t shares, std::int64_t block, Work&& work) {
  const std::int64_t blocks = (items + block - 1) / block;
  const auto begin_of = [&](std::int64_t share) { return std::min(blocks * share / shares * block, items); };
  std::vector<std::jthread> others;  // wait for their ends when they go
  others.reserve(static_cast<std::size_t>(shares - 1));
  for (std::int64_t share = 1; share < shares; ++share) {
    const std::int64_t first = begin_of(share), count = begin_of(share + 1) - first;
    try {
      others.emplace_back([&work, share, first, count] { work(share, first, count); });
    } catch (const std::system_error&) {  // there may be no more threads
      work(share, first, count);
    }
  }
  work(std::int64_t{0}, std::int64_t{0}, begin_of(1));
}

}  // namespace bamquery
