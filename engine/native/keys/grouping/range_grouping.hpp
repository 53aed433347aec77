// Rows to groups by several threads, each of which has some ranges of hashes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/keys/row_codes.hpp"

namespace bamquery {

/// As `group_rows`, in `shares` parts, by the hashes of codes.
std::vector<std::int64_t> number_by_codes(const RowCodes& row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, std::int64_t shares, std::int32_t* codes);

/// The same by the hashes of all columns.
std::vector<std::int64_t> number_by_hashes(std::span<const KeyColumn> columns, std::int64_t rows,
                                           std::int64_t shares, std::int32_t* codes);

}  // namespace bamquery
