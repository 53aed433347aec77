#include "engine/native/keys/rows_by_key.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "driver/native/threads/shared_work.hpp"

namespace bamquery {
namespace {

// Rows that are found before they are placed, so that their places can be asked for ahead.
constexpr std::size_t kFound = 512, kAhead = 16;

// Places the rows of `count` keys from `first` on.
void place_rows_of(std::span<const std::uint32_t> keys, std::uint32_t first, std::uint32_t count,
                   std::span<std::uint32_t> begins, std::uint32_t* order) {
  std::array<std::uint32_t, kFound> rows;
  for (std::size_t start = 0; start < keys.size(); start += kFound) {
    const std::size_t end = std::min(start + kFound, keys.size());
    std::size_t found = 0;
    for (std::size_t row = start; row < end; ++row) {
      rows[found] = static_cast<std::uint32_t>(row);
      found += keys[row] - first < count ? 1 : 0;
    }
    for (std::size_t i = 0; i < found; ++i) {
      if (i + kAhead < found) __builtin_prefetch(&begins[keys[rows[i + kAhead]] + std::size_t{1}], 1);
      order[begins[keys[rows[i]] + std::size_t{1}]++] = rows[i];
    }
  }
}

}  // namespace

// Each thread looks at all keys, which are read one after the other, and places the rows of some of them:
// these stay in their order, and no two threads write to the same places.
void place_rows(std::span<const std::uint32_t> keys, std::span<std::uint32_t> begins, std::uint32_t* order,
                std::int64_t shares) {
  const auto count = static_cast<std::uint32_t>(begins.size() - 2);
  // Keys from which on each share's are, found before any beginning moves: about as many rows for each.
  std::vector<std::uint32_t> firsts(static_cast<std::size_t>(shares) + 1, count);
  const auto starts = begins.subspan(1, count);
  const std::uint64_t total = begins[count + std::size_t{1}];
  for (std::size_t share = 0; share + 1 < firsts.size(); ++share) {
    const auto from = static_cast<std::uint32_t>(total * share / (firsts.size() - 1));
    firsts[share] = static_cast<std::uint32_t>(std::ranges::lower_bound(starts, from) - starts.begin());
  }
  share_parts(shares, [&](std::int64_t share) {
    const std::uint32_t first = firsts[static_cast<std::size_t>(share)];
    place_rows_of(keys, first, firsts[static_cast<std::size_t>(share) + 1] - first, begins, order);
  });
}

}  // namespace bamquery
