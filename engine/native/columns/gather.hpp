// Rows of columns at places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/native/bitmap.hpp"

namespace bamquery {

/// Rows that are wanted: places, of 4 or 8 bytes each; those whose bit is clear are null, and may be
/// anything.
struct Places {
  const std::byte* data;
  int width;
  std::int64_t count;
  Bits valid;
};

/// A column of values that have `bits` bits each: 1, or 8 to 128.
struct FixedColumn {
  const std::byte* values;  ///< Of the first row on; of bits it is `flags` that has them.
  int bits;
  std::int64_t rows;
  Bits flags;
  Bits valid;
};

/// Where rows go. There is a bitmap where the column has one, or the places; nulls are counted.
struct GatheredColumn {
  std::byte* values;
  std::uint8_t* bitmap;
  std::int64_t nulls = 0;
};

/// Copies the columns' rows at places, shared by threads. False where one is outside: what is written is of
/// no use then. All columns have as many rows.
bool gather_values(std::span<const FixedColumn> columns, const Places& places,
                   std::span<GatheredColumn> gathered);

/// A column of strings: `offsets` has one more than there are rows.
struct GivenStrings {
  std::span<const std::int64_t> offsets;
  std::span<const std::byte> data;
  Bits valid;
};

/// Writes where the strings at places begin, and where the last one ends: one offset more than there are
/// places; the bitmap, unless it is null; how many are null. Returns their bytes, nothing where a place or a
/// string is outside.
std::optional<std::int64_t> gather_offsets(const GivenStrings& column, const Places& places,
                                           std::int64_t* offsets, std::uint8_t* bitmap, std::int64_t& nulls);

/// Copies the strings themselves to where these offsets say.
void gather_strings(const GivenStrings& column, const Places& places, const std::int64_t* offsets,
                    std::byte* data);

}  // namespace bamquery
