#include "engine/native/keys/number_summary.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace bamquery {
namespace {

// Bits for each value, and bits that always are worth it.
constexpr std::uint64_t kBitsEach = 256, kFewBits = 1 << 16;
constexpr int kWordBits = 64;

// Calls `use` with each value that is not null.
template <typename T, typename Use>
void each_present(const KeyColumn& column, Values<T> values, Use&& use) {
  if (!column.has_nulls()) {
    for (std::int64_t i = 0; i < column.rows; ++i) use(values[i]);
    return;
  }
  for (std::int64_t start = 0; start < column.rows; start += kWordBits) {
    const auto rows = static_cast<int>(std::min<std::int64_t>(kWordBits, column.rows - start));
    for (std::uint64_t word = column.valid.word(start, rows); word != 0; word &= word - 1) {
      use(values[start + std::countr_zero(word)]);
    }
  }
}

// Least and greatest value, where there is one.
template <typename T>
std::optional<std::pair<T, T>> bounds_of(const KeyColumn& column, Values<T> values, std::int64_t& count) {
  std::int64_t first = 0;
  while (first < column.rows && !column.valid[first]) ++first;
  if (first == column.rows) return std::nullopt;
  T low = values[first], high = low;
  std::int64_t present = 0;
  each_present(column, values, [&](T value) {
    low = std::min(low, value);
    high = std::max(high, value);
    ++present;
  });
  count += present;
  return std::pair{low, high};
}

std::vector<std::uint64_t> flagged(const std::vector<std::uint64_t>& flags, std::uint64_t low) {
  std::size_t count = 0;
  for (const std::uint64_t word : flags) count += static_cast<std::size_t>(std::popcount(word));
  std::vector<std::uint64_t> found;
  found.reserve(count);
  for (std::uint64_t at = 0; at < flags.size(); ++at) {
    for (std::uint64_t word = flags[at]; word != 0; word &= word - 1) {
      found.push_back(low + at * kWordBits + static_cast<std::uint64_t>(std::countr_zero(word)));
    }
  }
  return found;
}

template <typename T>
NumberSummary summarize(std::span<const KeyColumn> columns, bool wants_distinct) {
  NumberSummary summary;
  std::optional<std::pair<T, T>> bounds;
  for (const KeyColumn& column : columns) {
    const auto own = bounds_of(column, Values<T>{column.data}, summary.count);
    if (!own) continue;
    bounds =
        bounds ? std::pair{std::min(bounds->first, own->first), std::max(bounds->second, own->second)} : *own;
  }
  if (!bounds) {
    if (wants_distinct) summary.distinct.emplace();
    return summary;
  }
  summary.low = word_of(bounds->first);
  summary.high = word_of(bounds->second);
  const std::uint64_t span = summary.high - summary.low;
  const auto count = static_cast<std::uint64_t>(summary.count);
  if (!wants_distinct || span >= std::max(kBitsEach * count, kFewBits)) return summary;
  std::vector<std::uint64_t> flags(span / kWordBits + 1);
  for (const KeyColumn& column : columns) {
    each_present(column, Values<T>{column.data}, [&](T value) {
      const std::uint64_t distance = word_of(value) - summary.low;
      flags[distance / kWordBits] |= 1ULL << (distance % kWordBits);
    });
  }
  summary.distinct = flagged(flags, summary.low);
  return summary;
}

}  // namespace

NumberSummary summarize_numbers(std::span<const KeyColumn> columns, bool wants_distinct) {
  NumberSummary summary;
  with_values(columns.front(), [&]<typename T>(Values<T>) {
    if constexpr (sizeof(T) <= 8) summary = summarize<T>(columns, wants_distinct);
  });
  return summary;
}

}  // namespace bamquery
