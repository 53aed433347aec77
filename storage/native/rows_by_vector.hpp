// Which vectors hold rows, and how many of these each has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bamquery {

struct VectorsOfRows {
  std::vector<std::int64_t> vectors;  ///< Ascending numbers.
  std::vector<std::int64_t> counts;   ///< Of rows, one at least.
};

/// Of ascending rows, none of them negative.
VectorsOfRows rows_by_vector(std::span<const std::int64_t> rows);

}  // namespace bamquery
