// What a column's first rows say about how to pack all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/native/packed/packing/pack.hpp"

namespace bamquery {

struct PackingSample {
  double bits = 0;                      ///< A row, with 16 bytes of parameters a vector.
  PackedScale scale{1, 0};              ///< Of integers: what all rows have in common.
  std::vector<std::uint8_t> exponents;  ///< Of most decimals, at most three, ascending.
  double distinct = 0;                  ///< Estimated number of distinct values, nulls not counted.
  bool fits = true;  ///< False where a decimal needs more than 64 bits; then only that is said.
};

/// Looks at `rows` rows and packs up to 64 of their vectors; arguments as `pack_vectors` takes them.
PackingSample sample_packing(ValueKind kind, const std::byte* values, const std::uint8_t* validity,
                             std::int64_t rows);

}  // namespace bamquery
