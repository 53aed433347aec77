// Columns packed: each vector in the form that is smallest for all its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/core/packed_vector.hpp"
#include "storage/native/statistics.hpp"

namespace bamquery {

/// What a column's vectors are packed with.
struct PackOptions {
  ValueKind kind;
  PackedScale scale;                        ///< Of integers; values that do not fit it cost bits only.
  std::span<const std::uint8_t> exponents;  ///< Of decimals, ascending: tried before all others.
};

/// Vectors end to end; offsets count from the first.
struct PackedVectors {
  std::vector<std::byte> payload;
  std::vector<PackedVector> vectors;
  std::vector<std::uint32_t> crcs;  ///< CRC-32C of each payload.
};

/// Packs `rows` rows: whole vectors, and a last one that may be short. `values` and `validity` (null: no
/// nulls) start with the first row and are canonical: zero under nulls, clear behind the last row.
///
/// Raises std::invalid_argument where a decimal needs more than 64 bits, or the payload more than 64 GiB.
PackedVectors pack_vectors(const PackOptions& options, const std::byte* values, const std::uint8_t* validity,
                           std::int64_t rows);

}  // namespace bamquery
