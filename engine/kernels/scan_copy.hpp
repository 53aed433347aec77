// Runs of bytes, copied by a warp.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

inline constexpr uint32_t kLoadBytes = 16;

/// One warp copies; both ends are multiples of 16, and the last load may be of fewer bytes than it copies.
__device__ inline void copy_run(const byte* from, byte* to, uint32_t bytes) {
  constexpr uint32_t kLoads = 8;  // in flight for each lane
  const auto source = reinterpret_cast<const uint4*>(from);
  const auto target = reinterpret_cast<uint4*>(to);
  const uint32_t vectors = (bytes + kLoadBytes - 1) / kLoadBytes;
  for (uint32_t first = 0; first < vectors; first += 32 * kLoads) {
    uint4 held[kLoads];
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = first + i * 32 + Lanes::lane();
      if (at < vectors) held[i] = source[at];
    }
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = first + i * 32 + Lanes::lane();
      if (at < vectors) target[at] = held[i];
    }
  }
}

}  // namespace bamquery
