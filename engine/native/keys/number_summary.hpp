// What scans of one side of a join are told of the other side's keys: their bounds, and each of them once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// What there is to know of the numbers of several columns; nulls are none of them.
struct NumberSummary {
  std::int64_t count = 0;  ///< of values
  std::uint64_t low = 0;   ///< the word of the least; of the columns' type, as `high` is
  std::uint64_t high = 0;
  /// Each value once, ascending; nothing where nobody asked, or where they are so far apart that a sort takes
  /// less time than a bit for each number between the bounds.
  std::optional<std::vector<std::uint64_t>> distinct;
};

/// Of columns of one type, of 8 bytes a value at most.
NumberSummary summarize_numbers(std::span<const KeyColumn> columns, bool wants_distinct);

}  // namespace bamquery
