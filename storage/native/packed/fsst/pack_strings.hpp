// Strings to payloads: each vector compressed, unless that makes it longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/native/packed/fsst/string_vector.hpp"
#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

/// Vectors end to end; offsets count from the first.
struct PackedStrings {
  std::vector<std::byte> payload;
  std::vector<StringVector> vectors;
  std::vector<std::uint32_t> crcs;  ///< CRC-32C of each payload.
};

/// Packs whole vectors, and a last one that may be short. `offsets` has a row more than there are, and counts
/// bytes of `data` from `data_start` on; strings of nulls, which `validity` tells (null: there are none), are
/// empty.
///
/// Raises std::invalid_argument where the strings of a vector come to 4 GiB, or the table cannot be one that
/// `train_symbols` made.
PackedStrings pack_strings(const SymbolTable& table, std::span<const std::int64_t> offsets,
                           const std::byte* data, std::int64_t data_start, const std::uint8_t* validity);

}  // namespace bamquery
