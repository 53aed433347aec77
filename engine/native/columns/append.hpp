// Columns one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/columns/gather.hpp"

namespace bamquery {

/// Copies all values to `values`, and to `bitmap` (null: no column has nulls) which are valid, shared by
/// threads. Columns have values of one width, and not of single bits.
void append_values(std::span<const FixedColumn> columns, std::byte* values, std::uint8_t* bitmap);

/// Bytes of the strings of each column, and before them; all as one last. Empty where offsets do not ascend
/// from first to last, or data is too small.
std::vector<std::int64_t> bytes_before(std::span<const GivenStrings> columns);

/// Copies all strings: `before` are those bytes. There is one offset more than there are rows. False where
/// offsets do not ascend: what is written is of no use then.
bool append_strings(std::span<const GivenStrings> columns, std::span<const std::int64_t> before,
                    std::int64_t* offsets, std::byte* data, std::uint8_t* bitmap);

}  // namespace bamquery
