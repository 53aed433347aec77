// Something of each row of a selection, counted and added up by tiles: the first step of sums of 64 bits.
#pragma once

#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_prefix.hpp"

namespace bamquery {

inline constexpr uint32_t kRounds = 4;
inline constexpr uint32_t kTile = kThreads * kRounds;

/// Writes what `count_of` gives for each row, if `counts` is not null, and how much each tile has together.
/// All threads call, and count: each once in a round, and for rows that are none, too, of which nothing may
/// come.
template <typename Count>
__device__ inline void count_tiles(uint32_t rows, uint64_t* counts, uint64_t* tiles, const Count& count_of) {
  __shared__ uint64_t sums[kWarps];
  const uint32_t tile_count = (rows + kTile - 1) / kTile;
  for (uint32_t tile = blockIdx.x; tile < tile_count; tile += gridDim.x) {
    uint64_t sum = 0;
    const uint32_t rounds = min((rows - tile * kTile + kThreads - 1) / kThreads, kRounds);
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t row = tile * kTile + round * kThreads + threadIdx.x;
      const uint64_t count = count_of(row);
      if (counts != nullptr && row < rows) counts[row] = count;
      sum += count;
    }
    sum = warp_prefix(sum);
    if (Lanes::lane() == 31) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t total = 0;
      for (uint32_t warp = 0; warp < kWarps; ++warp) total += sums[warp];
      tiles[tile] = total;
    }
    __syncthreads();  // All have read the sums that are written next.
  }
}

/// The same where a row is counted by itself.
template <typename Count>
__device__ inline void count_rows(uint32_t rows, uint64_t* counts, uint64_t* tiles, const Count& count_of) {
  count_tiles(rows, counts, tiles, [&](uint32_t row) -> uint64_t { return row < rows ? count_of(row) : 0; });
}

}  // namespace bamquery
