// Some rows of packed vectors that are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/packed/decode.hpp"

namespace bamquery {

/// Decodes the rows at `positions`, ascending: one by one where a vector has few of them, else out of the
/// vector's values. Rows of vector number v are `begins[v]`, which ascend, and those behind it.
///
/// Arguments otherwise are as `unpack_vectors` takes them, and so are `values` and `bitmap`, for as many rows
/// as there are positions. Returns the number of nulls. Raises std::invalid_argument where parameters are
/// impossible, or a position is not that of a row behind the one before.
std::int64_t pick_rows(ValueKind kind, std::span<const std::byte> payload,
                       std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> begins,
                       const PackedScale& scale, std::span<const std::int64_t> positions, std::byte* values,
                       std::uint8_t* bitmap);

/// Where picked rows go: from element `at` on of `values` as Arrow has them, and of `bitmap`, if it is not
/// null.
struct PickTarget {
  std::byte* values;
  std::uint8_t* bitmap;
  std::int64_t at = 0;
};

/// The same by the calling thread alone.
std::int64_t pick_rows(ValueKind kind, std::span<const std::byte> payload,
                       std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> begins,
                       const PackedScale& scale, std::span<const std::int64_t> positions,
                       const PickTarget& target);

}  // namespace bamquery
