// Columns that a program decodes as it goes: values never leave the processor's caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/native/pipeline/registers.hpp"
#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// Vectors of a packed column in one buffer, as `unpack_vectors` takes them.
struct PackedInput {
  std::span<const std::byte> payload;
  std::span<const std::int64_t> starts;
  std::span<const PackedVector> vectors;
  std::span<const std::int64_t> rows;  ///< Of each vector.
  PackedScale scale;
};

/// Puts rows of a vector into a register, as `load_rows` puts those of a column: `count` of them, number
/// `picks[i] % 1024` each, ascending; null picks: all its rows, as many as `count`.
///
/// Raises std::invalid_argument where parameters are impossible, or a row is none of the vector's.
void load_packed(ValueKind kind, const PackedInput& column, std::size_t vector, const std::int64_t* picks,
                 std::int32_t count, Register& out);

}  // namespace bamquery
