// Rows to groups by several threads: the numbers are those that one would give.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/keys/row_codes.hpp"

namespace bamquery {

/// As `group_rows`, in `shares` parts. `row_codes` has codes for the keys of all rows; null where 64 bits are
/// few.
std::vector<std::int64_t> number_by_shares(const RowCodes* row_codes, std::span<const KeyColumn> columns,
                                           std::int64_t rows, std::int64_t shares, std::int32_t* codes);

}  // namespace bamquery
