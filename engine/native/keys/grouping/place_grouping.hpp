// Rows to groups by several threads and a table of all codes, few as they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/keys/row_codes.hpp"

namespace bamquery {

/// As `group_rows`, in `shares` parts, by at most 2^32 codes.
std::vector<std::int64_t> number_by_place(const RowCodes& row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, std::int64_t shares, std::int32_t* codes);

}  // namespace bamquery
