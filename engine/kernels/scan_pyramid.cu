// How the rows of a selection lie: distinct groups of 2, 4, 8 ... rows of their fragments.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kLevels = 16;
constexpr uint32_t kNowhere = ~0u;
/// Vectors of the largest group: rows farther apart than that are never in one.
constexpr uint32_t kReach = (1u << kLevels) / kVectorRows;

// Bits in which the numbers of two rows of a fragment differ, as far as the highest is concerned.
__device__ inline uint32_t difference(const ScanVector* vectors, uint32_t before, uint32_t position) {
  if (before == kNowhere) return ~0u;
  const uint32_t from = before / kVectorRows;
  const uint32_t to = position / kVectorRows;
  if (from == to) return before ^ position;
  if (vectors[from].piece != vectors[to].piece) return ~0u;
  const uint32_t numbers = vectors[from].number ^ vectors[to].number;
  return numbers < kReach ? numbers * kVectorRows : ~0u;
}

// The value of the nearest lane up to this one that has any. All lanes call.
__device__ inline uint32_t latest(uint32_t value) {
  const uint32_t lane = Lanes::lane();
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance && value == kNowhere) value = before;
  }
  return value;
}

struct Selected {
  const uint32_t* mask;       // A bit for each item; null: all of them are selected.
  const uint32_t* counts;     // Bits set for each 1,024 items.
  const uint32_t* positions;  // Of the items; null: they are positions themselves.

  __device__ uint32_t position(uint32_t item) const { return positions == nullptr ? item : positions[item]; }

  // The last selected position before a tile, if it is near enough to matter. All lanes call.
  __device__ uint32_t before(uint32_t tile) const {
    if (tile == 0) return kNowhere;
    const uint32_t lane = Lanes::lane();
    if (mask == nullptr) return position(tile * kVectorRows - 1);
    for (uint32_t back = 0; back < kReach && back < tile; back += 32) {
      const uint32_t other = back + lane;
      const uint32_t holders = __ballot_sync(~0u, other < tile && counts[tile - 1 - other] != 0);
      if (holders == 0) continue;
      const uint32_t first = (tile - 1 - back - lowest_bit(holders)) * kVectorRows + lane * 32;
      uint32_t last = kNowhere;
      for (uint32_t rest = mask[first / 32]; rest != 0; rest &= rest - 1) last = first + lowest_bit(rest);
      return position(__shfl_sync(~0u, latest(last), 31));
    }
    return kNowhere;
  }
};

}  // namespace

/// groups[k] (zero before): distinct groups of 2^(k + 1) rows of a fragment that hold a selected row, k
/// below 16. Items are those with a bit in `mask`, whose set bits for each of the `tiles` of 1,024 are
/// `counts`; without a mask the first *count. `positions` tells where in the chunk they are; null: item i is
/// at position i.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_pyramid(const uint32_t* mask, const uint32_t* counts, uint32_t tiles, const uint32_t* positions,
                 const uint32_t* count, const ScanVector* vectors, uint32_t* groups) {
  __shared__ uint32_t totals[kLevels];
  if (threadIdx.x < kLevels) totals[threadIdx.x] = 0;
  __syncthreads();
  const Selected selected{mask, counts, positions};
  const uint32_t lane = Lanes::lane();
  const uint32_t step = gridDim.x * kWarps;
  uint32_t begun[kLevels] = {};
  const auto note = [&](uint32_t before, uint32_t position) {
    const uint32_t bits = difference(vectors, before, position);
#pragma unroll
    for (uint32_t k = 0; k < kLevels; ++k) begun[k] += (bits >> (k + 1)) != 0 ? 1 : 0;
  };
  for (uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32; tile < tiles; tile += step) {
    const uint32_t first = tile * kVectorRows + lane * 32;
    uint32_t mine = 0;
    if (mask != nullptr) {
      if (counts[tile] == 0) continue;
      mine = mask[first / 32];
    } else if (*count > first) {
      mine = *count - first >= 32 ? ~0u : (1u << (*count - first)) - 1;
    }
    uint32_t head = kNowhere;
    uint32_t last = kNowhere;
    for (uint32_t rest = mine; rest != 0; rest &= rest - 1) {
      const uint32_t position = selected.position(first + lowest_bit(rest));
      if (last == kNowhere) {
        head = position;
      } else {
        note(last, position);
      }
      last = position;
    }
    const uint32_t so_far = __shfl_up_sync(~0u, latest(last), 1);
    const uint32_t outside = selected.before(tile);
    if (head != kNowhere) note(lane == 0 || so_far == kNowhere ? outside : so_far, head);
  }
  for (uint32_t k = 0; k < kLevels; ++k) {
    const uint32_t sum = __reduce_add_sync(~0u, begun[k]);
    if (Lanes::leads() && sum != 0) atomicAdd(&totals[k], sum);
  }
  __syncthreads();
  if (threadIdx.x < kLevels && totals[threadIdx.x] != 0) atomicAdd(&groups[threadIdx.x], totals[threadIdx.x]);
}

}  // namespace bamquery
