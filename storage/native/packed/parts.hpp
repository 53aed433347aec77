// Bounds and checksums of the parts of packed vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/core/packed_parts.hpp"
#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// Of vectors, in their order.
struct PackedParts {
  std::vector<PackedPartBounds> bounds;
  std::vector<std::uint32_t> crcs;         ///< CRC-32C of each part's codes; 0 where a vector has no parts.
  std::vector<std::uint32_t> escape_crcs;  ///< Of what is behind the codes; the same.
};

/// What is to be known of the parts of vectors. Where a vector has none, all steps are within the bounds of
/// its parts that have rows.
///
/// Arguments and errors are those of `unpack_vectors`.
PackedParts packed_parts(ValueKind kind, std::span<const std::byte> payload,
                         std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                         std::span<const std::int64_t> rows, const PackedScale& scale);

}  // namespace bamquery
