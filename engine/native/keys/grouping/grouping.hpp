// Rows to groups: equal keys get one number, dense and in order of first appearance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// Rows that a grouping takes at most: their numbers have 32 bits.
inline constexpr std::int64_t kMostGroupedRows = 0x7FFFFFFF;

/// Writes each row's number to `codes`, and returns the first row of each group. Nulls are equal to each
/// other. There is a column at least, and all have `rows` rows.
std::vector<std::int64_t> group_rows(std::span<const KeyColumn> columns, std::int64_t rows,
                                     std::int32_t* codes);

}  // namespace bamquery
