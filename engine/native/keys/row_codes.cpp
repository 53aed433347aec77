#include "engine/native/keys/row_codes.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kMostCodes = 1ULL << 62;
constexpr std::uint64_t kNarrowCodes = 1ULL << 32;

// How codes of the columns before are multiplied.
enum class Before : std::uint8_t {
  kNone,    // there are none: all are 0
  kNarrow,  // all codes have 32 bits, which each vector unit multiplies
  kWide,
};

// The values' distances from the lowest one take the place of what `codes` has for the columns before, each
// of which is as many times `codes`. `usable` is null where nothing can be outside.
template <bool kChecked, Before kBefore, typename T>
void add_distances(Values<T> values, std::int64_t start, std::int64_t count, std::uint64_t low,
                   std::uint64_t span, std::uint64_t factor, std::uint64_t* codes, std::uint8_t* usable) {
  const auto narrow = static_cast<std::uint32_t>(factor);
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = values[start + i];
    const std::uint64_t distance = word_of(value) - low;  // what is below wraps to more than any distance
    if constexpr (kBefore == Before::kNone) {
      codes[i] = distance;
    } else if constexpr (kBefore == Before::kNarrow) {
      codes[i] = std::uint64_t{static_cast<std::uint32_t>(codes[i])} * narrow + distance;
    } else {
      codes[i] = codes[i] * factor + distance;
    }
    if constexpr (kChecked) {
      bool inside = distance <= span;
      if constexpr (sizeof(T) == 16) inside = inside && value == static_cast<std::int64_t>(value);
      usable[i] = static_cast<std::uint8_t>(usable[i] & static_cast<std::uint8_t>(inside));
    }
  }
}

template <bool kChecked, typename T>
void add_distances(Before before, Values<T> values, std::int64_t start, std::int64_t count, std::uint64_t low,
                   std::uint64_t span, std::uint64_t factor, std::uint64_t* codes, std::uint8_t* usable) {
  if (before == Before::kNone) {
    add_distances<kChecked, Before::kNone>(values, start, count, low, span, factor, codes, usable);
  } else if (before == Before::kNarrow) {
    add_distances<kChecked, Before::kNarrow>(values, start, count, low, span, factor, codes, usable);
  } else {
    add_distances<kChecked, Before::kWide>(values, start, count, low, span, factor, codes, usable);
  }
}

Before before_column(std::size_t column, std::uint64_t codes) {
  if (column == 0) return Before::kNone;
  return codes <= kNarrowCodes ? Before::kNarrow : Before::kWide;
}

// The least and the greatest value, as far as there are any.
template <typename T>
struct alignas(64) Ends {
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::min();
  bool any = false;

  Ends() {
    if constexpr (sizeof(T) == 16) {  // the library may not know their limits
      high = static_cast<T>(static_cast<UnsignedInt128>(1) << 127);
      low = ~high;
    }
  }

  void add(const Ends& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    any = any || other.any;
  }
};

template <typename T>
Ends<T> ends_of(const KeyColumn& column) {
  const Values<T> values{column.data};
  Ends<T> ends;
  if (!column.has_nulls()) {
    ends.any = column.rows > 0;
    for (std::int64_t row = 0; row < column.rows; ++row) {
      const T value = values[row];
      ends.low = std::min(ends.low, value);
      ends.high = std::max(ends.high, value);
    }
    return ends;
  }
  for (std::int64_t row = 0; row < column.rows; ++row) {
    if (!column.valid[row]) continue;
    const T value = values[row];
    ends.low = std::min(ends.low, value);
    ends.high = std::max(ends.high, value);
    ends.any = true;
  }
  return ends;
}

}  // namespace

std::optional<RowCodes::Range> RowCodes::range_of(const KeyColumn& column) {
  std::optional<Range> found;
  with_values(column, [&]<typename T>(Values<T>) {
    std::vector<Ends<T>> all(static_cast<std::size_t>(worth_shares(column.rows)));
    share_items(column.rows, static_cast<std::int64_t>(all.size()), kBlockRows,
                [&](std::int64_t share, std::int64_t first, std::int64_t count) {
                  all[static_cast<std::size_t>(share)] = ends_of<T>(column.slice(first, count));
                });
    for (const Ends<T>& own : all) all.front().add(own);
    T low = all.front().low, high = all.front().high;
    if (!all.front().any) low = high = T{0};
    if constexpr (sizeof(T) == 16) {
      if (low < std::numeric_limits<std::int64_t>::min() || high > std::numeric_limits<std::int64_t>::max()) {
        return;
      }
    }
    found = Range{word_of(low), word_of(high) - word_of(low), false};
  });
  return found;
}

std::optional<RowCodes> RowCodes::fit(std::span<const KeyColumn> columns,
                                      const std::vector<bool>& null_is_key) {
  RowCodes made;
  UnsignedInt128 total = 1;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::optional<Range> range = range_of(columns[i]);
    if (!range) return std::nullopt;
    range->has_null_code = null_is_key[i];
    if (columns.size() == 1 && !range->has_null_code) {
      made.ranges_.push_back(*range);
      made.count_ = range->codes();
      return made;
    }
    if (range->span >= kMostCodes) return std::nullopt;
    total *= range->codes();
    if (total > kMostCodes) return std::nullopt;
    made.ranges_.push_back(*range);
  }
  made.count_ = static_cast<std::uint64_t>(total);
  return made;
}

void RowCodes::encode(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t count,
                      std::uint64_t* codes, std::uint8_t* usable) const {
  std::fill_n(codes, count, 0);
  std::fill_n(usable, count, std::uint8_t{1});
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const KeyColumn& column = columns[c];
    const Range& range = ranges_[c];
    if (!column.has_nulls()) {
      with_values(column, [&](const auto values) {
        add_distances<true>(before_column(c, count_), values, start, count, range.low, range.span,
                            range.codes(), codes, usable);
      });
      continue;
    }
    with_values(column, [&]<typename T>(Values<T> values) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint64_t place = range.span + 1;
        bool inside = range.has_null_code;
        if (column.valid[start + i]) {
          const T value = values[start + i];
          place = word_of(value) - range.low;
          inside = place <= range.span;
          if constexpr (sizeof(T) == 16) inside = inside && value == static_cast<std::int64_t>(value);
        }
        codes[i] = codes[i] * range.codes() + place;
        usable[i] = static_cast<std::uint8_t>(usable[i] & static_cast<std::uint8_t>(inside));
      }
    });
  }
  for (std::int64_t i = 0; i < count; ++i) codes[i] = usable[i] != 0 ? codes[i] : 0;
}

void RowCodes::encode_own(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t count,
                          std::uint64_t* codes) const {
  std::fill_n(codes, count, 0);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const KeyColumn& column = columns[c];
    const Range& range = ranges_[c];
    with_values(column, [&](const auto values) {
      if (!column.has_nulls()) {
        add_distances<false>(before_column(c, count_), values, start, count, range.low, range.span,
                             range.codes(), codes, nullptr);
        return;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t place =
            column.valid[start + i] ? word_of(values[start + i]) - range.low : range.span + 1;
        codes[i] = codes[i] * range.codes() + place;
      }
    });
  }
}

}  // namespace bamquery
