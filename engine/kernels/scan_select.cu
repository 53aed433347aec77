// From bits to positions: prefix sums, and what is picked by them.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/scan_prefix.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kScanItems = 4;

}  // namespace

/// offsets[i] = sum of the counts before i, for i from 0 to `count`; `total` gets the last. One block of
/// 1,024.
extern "C" __global__ void __launch_bounds__(kScanThreads)
    scan_offsets(const uint32_t* counts, uint32_t count, uint32_t* offsets, uint32_t* total) {
  __shared__ uint32_t sums[32];
  const uint32_t lane = Lanes::lane();
  const uint32_t warp = threadIdx.x / 32;
  uint32_t before = 0;
  for (uint32_t first = 0; first < count; first += kScanThreads * kScanItems) {
    const uint32_t mine = first + threadIdx.x * kScanItems;
    uint32_t values[kScanItems];
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < kScanItems; ++i) {
      values[i] = mine + i < count ? counts[mine + i] : 0;
      sum += values[i];
    }
    const uint32_t within = warp_prefix(sum);
    if (lane == 31) sums[warp] = within;
    __syncthreads();
    if (warp == 0) {
      const uint32_t of_warp = sums[lane];
      sums[lane] = warp_prefix(of_warp);
    }
    __syncthreads();
    uint32_t at = before + within - sum + (warp == 0 ? 0 : sums[warp - 1]);
#pragma unroll
    for (uint32_t i = 0; i < kScanItems; ++i) {
      if (mine + i < count) offsets[mine + i] = at;
      at += values[i];
    }
    before += sums[31];
    __syncthreads();  // All have read the sums that are written next.
  }
  if (threadIdx.x == 0) {
    offsets[count] = before;
    *total = before;
  }
}

/// Positions of the bits that are set, ascending: one warp a vector, whose first goes to offsets[vector].
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_positions(const uint32_t* mask, const uint32_t* offsets, uint32_t vectors, uint32_t* positions) {
  const uint32_t lane = Lanes::lane();
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    uint32_t at = offsets[vector];
    if (at == offsets[vector + 1]) continue;
    const uint32_t mine = mask[static_cast<uint64_t>(vector) * kVectorWords + lane];
    for (uint32_t i = 0; i < kVectorWords; ++i) {
      const uint32_t word = __shfl_sync(~0u, mine, static_cast<int>(i));
      if ((word >> lane & 1) != 0) {
        positions[at + count_before(word, lane)] = vector * kVectorRows + i * 32 + lane;
      }
      at += bit_count(word);
    }
  }
}

/// to[i] = from[picked[i]] for i < *count.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_pick(const uint32_t* from, const uint32_t* picked, const uint32_t* count, uint32_t* to) {
  const uint32_t step = gridDim.x * kThreads;
  const uint32_t end = *count;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < end; i += step) to[i] = from[picked[i]];
}

/// to[i] = from[picked[i]], `each` at a time, for i < *count.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_pick_offsets(const uint64_t* from, const uint32_t* picked, const uint32_t* count, uint32_t each,
                      uint64_t* to) {
  const uint32_t end = *count * each;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < end; i += gridDim.x * kThreads) {
    to[i] = from[static_cast<uint64_t>(picked[i / each]) * each + i % each];
  }
}

/// rows[p] = how many positions lie in piece p, whose first vector is firsts[p]; firsts[pieces] is behind the
/// last. `vectors` (zero before) gets how many vectors have one. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_describe(const uint32_t* positions, uint32_t count, const uint32_t* firsts, uint32_t pieces,
                  uint32_t* rows, uint32_t* vectors) {
  const uint32_t step = gridDim.x * kThreads;
  const uint32_t me = blockIdx.x * kThreads + threadIdx.x;
  uint32_t distinct = 0;
  for (uint32_t i = me; i < count; i += step) {
    distinct += i == 0 || positions[i - 1] / kVectorRows != positions[i] / kVectorRows ? 1 : 0;
  }
  distinct = __reduce_add_sync(~0u, distinct);
  if (Lanes::leads() && distinct != 0) atomicAdd(vectors, distinct);
  // How many positions come before a vector, by bisection.
  const auto before = [&](uint32_t vector) {
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (positions[middle] / kVectorRows < vector) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  for (uint32_t piece = me; piece < pieces; piece += step) {
    rows[piece] = before(firsts[piece + 1]) - before(firsts[piece]);
  }
}

/// used[v] = 1 for each vector that has one of the positions; zeros before.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_used_vectors(const uint32_t* positions, uint32_t count, uint32_t* used) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    const uint32_t vector = positions[i] / kVectorRows;
    if (i == 0 || positions[i - 1] / kVectorRows != vector) used[vector] = 1;
  }
}

/// Requests for the vectors that are used, which go to the places that `slots` (their prefix sums) gives them
/// in `target`; with `nulls`, nothing of those whose state tells. `file_rows` are of each piece. With each
/// vector come the `behind` bytes behind it, in places of 16 bytes more if there are any. `tally`, if it is
/// not null, gets requests and distinct blocks of `block_bytes`. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_vector_requests(const uint32_t* used, const uint32_t* slots, uint32_t vectors,
                         const ScanVector* places_of, const ScanPlace* places, const uint32_t* file_rows,
                         const uint8_t* nulls, uint32_t bits, uint32_t behind, uint64_t target,
                         ScanRequest* requests, uint32_t block_bytes, ScanTally* tally) {
  const uint32_t step = gridDim.x * kThreads;
  const uint32_t size = kVectorRows * bits / 8;
  const uint32_t room = size + (behind != 0 ? 16 : 0);
  const auto read = [&](uint32_t vector) {
    return used[vector] != 0 && (nulls == nullptr || static_cast<Nulls>(nulls[vector]) == Nulls::kSome);
  };
  uint32_t commands = 0;
  uint32_t blocks = 0;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    if (used[vector] == 0) continue;
    const uint32_t slot = slots[vector];
    const ScanVector from = places_of[vector];
    const ScanPlace place = places[from.piece];
    const uint64_t rows =
        min(file_rows[from.piece] - static_cast<uint64_t>(from.number) * kVectorRows, uint64_t{kVectorRows});
    const uint64_t offset = place.offset + static_cast<uint64_t>(from.number) * size;
    ScanRequest request{};
    request.source = place.map + offset;
    request.target = target + static_cast<uint64_t>(slot) * room;
    request.bytes = read(vector) ? static_cast<uint32_t>((rows * bits + 7) / 8) + behind : 0;
    request.nsid = place.nsid;
    requests[slot] = request;
    if (tally == nullptr || request.bytes == 0) continue;
    commands += 1;
    blocks += new_blocks(places_of, places, read, vector, size, behind, request.bytes, block_bytes);
  }
  if (tally == nullptr) return;
  commands = __reduce_add_sync(~0u, commands);
  blocks = __reduce_add_sync(~0u, blocks);
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

}  // namespace bamquery
