// Conditions on packed columns, answered on codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/packed/selecting/predicate.hpp"

namespace bamquery {

/// Sets a bit of `mask` for each row of the vectors, end to end: whether it passes. Returns how many do.
///
/// Vectors are as `unpack_vectors` takes them. Where a whole vector passes or fails by its parameters, its
/// codes are not looked at. Raises std::invalid_argument where parameters are impossible.
std::int64_t compare_packed(PackedPredicate& predicate, std::span<const std::byte> payload,
                            std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                            std::span<const std::int64_t> rows, std::uint8_t* mask);

}  // namespace bamquery
