// Strings of groups that were made by their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/bitmap.hpp"

namespace bamquery {

/// Strings of rows, each from its offset to the next one's.
struct StringRows {
  std::span<const std::int64_t> offsets;
  const std::byte* data = nullptr;
  std::int64_t size = 0;  ///< Bytes of `data`.
  Bits valid;             ///< Those of others may be anything.
};

/// Whether each row's string is that of the row that leads its group; null is the same as null. `codes` are
/// the rows' groups. False, too, where a string would not be within the data, or a row is of no group.
bool are_same_strings(const StringRows& rows, std::span<const std::int32_t> codes,
                      std::span<const std::int64_t> leaders);

}  // namespace bamquery
