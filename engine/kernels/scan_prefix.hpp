// Prefix sums of a warp.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

inline constexpr uint32_t kScanThreads = 1024;  ///< Of the one thread block that makes prefix sums.

/// The sum of the lanes' values up to this one, its own included. All lanes call.
template <typename T>
__device__ inline T warp_prefix(T value) {
  const uint32_t lane = Lanes::lane();
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const T before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

}  // namespace bamquery
