#include "engine/native/keys/number_summary.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <vector>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

// Bits for each value, and bits that always are worth it.
constexpr std::uint64_t kBitsEach = 256, kFewBits = 1 << 16;
constexpr int kWordBits = 64;
// Rows that a thread looks at before it goes on to the next ones.
constexpr std::int64_t kPieceRows = 1 << 14;

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

// How many values there are, the least and the greatest one.
template <typename T>
struct alignas(64) Seen {
  std::int64_t count = 0;
  T low{}, high{};

  void add(const Seen& other) {
    if (other.count == 0) return;
    low = count == 0 ? other.low : std::min(low, other.low);
    high = count == 0 ? other.high : std::max(high, other.high);
    count += other.count;
  }
};

template <typename T>
Seen<T> seen_in(const KeyColumn& column) {
  const Values<T> values{column.data};
  Seen<T> seen;
  std::int64_t first = 0;
  while (first < column.rows && !column.valid[first]) ++first;
  if (first == column.rows) return seen;
  T low = values[first], high = low;
  std::int64_t present = 0;
  each_present(column, values, [&](T value) {
    low = std::min(low, value);
    high = std::max(high, value);
    ++present;
  });
  seen.count = present;
  seen.low = low;
  seen.high = high;
  return seen;
}

// The numbers whose flags are set, the first of which is that of `low`.
std::vector<std::uint64_t> flagged(const std::vector<std::uint64_t>& flags, std::uint64_t low) {
  const auto words = static_cast<std::int64_t>(flags.size());
  const std::int64_t shares = worth_shares(words);
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(shares) + 1);
  share_items(words, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::uint64_t own = 0;
    for (std::int64_t at = first; at < first + count; ++at) {
      own += static_cast<std::uint64_t>(std::popcount(flags[static_cast<std::size_t>(at)]));
    }
    begins[static_cast<std::size_t>(share) + 1] = own;
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint64_t> found(begins.back());
  share_items(words, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::uint64_t* out = found.data() + begins[static_cast<std::size_t>(share)];
    for (std::int64_t at = first; at < first + count; ++at) {
      const std::uint64_t begin = low + static_cast<std::uint64_t>(at) * kWordBits;
      for (std::uint64_t word = flags[static_cast<std::size_t>(at)]; word != 0; word &= word - 1) {
        *out++ = begin + static_cast<std::uint64_t>(std::countr_zero(word));
      }
    }
  });
  return found;
}

// Sets the bits of a column's values; `kShared`: others do so at the same time.
template <bool kShared, typename T>
void set_flags(const KeyColumn& column, std::uint64_t low, std::vector<std::uint64_t>& flags) {
  each_present(column, Values<T>{column.data}, [&](T value) {
    const std::uint64_t distance = word_of(value) - low;
    std::uint64_t& word = flags[distance / kWordBits];
    const std::uint64_t bit = 1ULL << (distance % kWordBits);
    if constexpr (kShared) {  // nothing else is handed over by it
      const std::atomic_ref shared(word);
      if ((shared.load(std::memory_order_relaxed) & bit) == 0)
        shared.fetch_or(bit, std::memory_order_relaxed);
    } else {
      word |= bit;
    }
  });
}

template <typename T>
NumberSummary summarize(std::span<const KeyColumn> columns, bool wants_distinct) {
  std::vector<KeyColumn> pieces;
  std::int64_t rows = 0;
  for (const KeyColumn& column : columns) {
    rows += column.rows;
    for (std::int64_t first = 0; first < column.rows; first += kPieceRows) {
      pieces.push_back(column.slice(first, std::min(kPieceRows, column.rows - first)));
    }
  }
  const std::int64_t shares = worth_shares(rows);
  const auto each_piece = [&](auto&& use) {
    share_items(static_cast<std::int64_t>(pieces.size()), shares, 1,
                [&](std::int64_t share, std::int64_t first, std::int64_t count) {
                  for (std::int64_t at = first; at < first + count; ++at) {
                    use(share, pieces[static_cast<std::size_t>(at)]);
                  }
                });
  };
  std::vector<Seen<T>> seen(static_cast<std::size_t>(shares));
  each_piece([&](std::int64_t share, const KeyColumn& piece) {
    seen[static_cast<std::size_t>(share)].add(seen_in<T>(piece));
  });
  Seen<T> all;
  for (const Seen<T>& own : seen) all.add(own);
  NumberSummary summary;
  summary.count = all.count;
  if (all.count == 0) {
    if (wants_distinct) summary.distinct.emplace();
    return summary;
  }
  summary.low = word_of(all.low);
  summary.high = word_of(all.high);
  const std::uint64_t span = summary.high - summary.low;
  const auto count = static_cast<std::uint64_t>(summary.count);
  if (!wants_distinct || span >= std::max(kBitsEach * count, kFewBits)) return summary;
  std::vector<std::uint64_t> flags(span / kWordBits + 1);
  each_piece([&](std::int64_t, const KeyColumn& piece) {
    if (shares == 1) {
      set_flags<false, T>(piece, summary.low, flags);
    } else {
      set_flags<true, T>(piece, summary.low, flags);
    }
  });
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
