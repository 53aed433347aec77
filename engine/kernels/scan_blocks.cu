// Which distinct blocks hold a selection's rows.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kRounds = 4;
constexpr uint32_t kTile = kThreads * kRounds;

}  // namespace

/// counts[t] = how many of the items of tile t, 1,024 each, begin a block. One block of 256 threads a tile.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_count_blocks(const ScanItems items, uint32_t* counts) {
  uint32_t total = 0;
  const uint32_t count = items.items();
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t item = blockIdx.x * kTile + round * kThreads + threadIdx.x;
    total += __syncthreads_count(item < count && items.begins_block(item));
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// starts[b] = the first item of block b, with one more behind the last; ordinals[i] = the block of item i.
/// `before` has the prefix sums of the tiles' counts, the total behind them.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_list_blocks(const ScanItems items, const uint32_t* before, uint32_t* starts, uint32_t* ordinals) {
  __shared__ uint32_t heads[kRounds * kWarps];
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t count = items.items();
  uint32_t found[kRounds];
#pragma unroll
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t item = blockIdx.x * kTile + round * kThreads + threadIdx.x;
    found[round] = __ballot_sync(~0u, item < count && items.begins_block(item));
    if (Lanes::lane() == 0) heads[round * kWarps + warp] = bit_count(found[round]);
  }
  __syncthreads();
  if (warp == 0) {
    static_assert(kRounds * kWarps == 32);
    const uint32_t mine = heads[threadIdx.x];
    uint32_t sum = mine;
#pragma unroll
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
      const uint32_t left = __shfl_up_sync(~0u, sum, distance);
      if (threadIdx.x >= distance) sum += left;
    }
    heads[threadIdx.x] = sum - mine;
  }
  __syncthreads();
#pragma unroll
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t item = blockIdx.x * kTile + round * kThreads + threadIdx.x;
    if (item >= count) continue;
    const bool begins = (found[round] >> Lanes::lane() & 1) != 0;
    const uint32_t earlier =
        before[blockIdx.x] + heads[round * kWarps + warp] + count_before(found[round], Lanes::lane());
    ordinals[item] = begins ? earlier : earlier - 1;
    if (begins) starts[earlier] = item;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) starts[before[gridDim.x]] = count;
}

}  // namespace bamquery
