// Whole packed vectors, decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// Bit r: row r of a vector, or what is said of it.
using VectorMask = std::array<std::uint64_t, kPackedVectorRows / 64>;

/// The lowest `rows` bits of a mask.
VectorMask first_rows(std::uint32_t rows);

/// Copies the lowest `rows` bits of a mask to bits `row` and following of `bitmap`; returns how many are set.
std::uint32_t store_mask(SimdLevel level, const VectorMask& mask, std::uint32_t rows, std::uint8_t* bitmap,
                         std::int64_t row);

/// Values of so many rows as Arrow has them, from row `row` of `values` on; of booleans and decimals, which
/// are decoded as something else.
template <typename T>
void store_values(ValueKind kind, const T* decoded, std::uint32_t rows, std::byte* values, std::int64_t row);

/// Decodes a vector of `rows` rows, nulls as zeros; T is that of `with_packed_type`.
///
/// Sets bits of `valid` and returns the number of nulls.
template <typename T>
std::uint32_t decode_vector(SimdLevel level, const Payload& payload, const PackedVector& vector,
                            std::uint32_t rows, const PackedScale& scale, T* out, VectorMask& valid);

/// Decodes vectors end to end as Arrow has values of the kind; `bitmap`, if it is not null, gets a bit a row.
/// Returns the number of nulls.
///
/// Vector number v has `rows[v]` rows and its payload at byte `starts[v]`. Raises std::invalid_argument where
/// parameters are impossible; whatever the bytes are, none outside of the arguments is read or written.
std::int64_t unpack_vectors(ValueKind kind, std::span<const std::byte> payload,
                            std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                            std::span<const std::int64_t> rows, const PackedScale& scale, std::byte* values,
                            std::uint8_t* bitmap);

}  // namespace bamquery
