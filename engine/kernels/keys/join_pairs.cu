// Pairs of probe rows and build rows, in the order of the probe rows, then of the build rows: what was found
// for each probe row, written out.
#include "engine/kernels/keys/join_table.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kVector = 1024;

/// The last row before which there are at most so many pairs; offsets[rows] counts as one.
__device__ inline uint32_t last_row(const uint64_t* offsets, uint32_t low, uint32_t rows, uint64_t pairs) {
  uint32_t high = rows;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (offsets[middle] <= pairs) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

/// Rows that have a partner, or with `alone` those that have none, ascending, and what was found for them (if
/// `partners` is not null). `before` has for each 1,024 rows how many there are before. A warp each.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_select(const uint32_t* found, uint32_t rows, uint32_t nobody, uint32_t alone, const uint64_t* before,
                uint32_t* positions, uint32_t* partners) {
  const uint32_t lane = Lanes::lane();
  const uint32_t vectors = rows / kVector + (rows % kVector != 0 ? 1 : 0);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    uint64_t at = before[vector];
    const uint32_t first = vector * kVector;
    const uint32_t words = (min(rows - first, kVector) + 31) / 32;
    for (uint32_t word = 0; word < words; ++word) {
      const uint32_t row = first + word * 32 + lane;
      const uint32_t partner = row < rows ? found[row] : nobody;
      const bool chosen = row < rows && (partner == nobody) == (alone != 0);
      const uint32_t all = __ballot_sync(~0u, chosen);
      if (chosen) {
        const uint64_t place = at + count_before(all, lane);
        positions[place] = row;
        if (partners != nullptr) partners[place] = partner;
      }
      at += bit_count(all);
    }
  }
}

/// For each place of an order of rows that come by their first rows: the run of the first row. `order` null:
/// the rows as they come; rows of `nobody` have no run.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_runs(const uint32_t* order, const uint32_t* firsts, uint32_t rows, uint32_t nobody, Run* runs) {
  const auto first_at = [&](uint32_t place) { return firsts[order == nullptr ? place : order[place]]; };
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < rows; i += step) {
    const uint32_t first = first_at(i);
    if (first == nobody) continue;
    if (i == 0 || first_at(i - 1) != first) runs[first].begin = i;
    if (i + 1 == rows || first_at(i + 1) != first) runs[first].end = i + 1;
  }
}

/// Where to end some rows from row `begin` on that have about `most` pairs and are at least one: the row
/// behind them, and the pairs before it.
extern "C" __global__ void join_cut(const uint64_t* offsets, uint32_t rows, uint32_t begin, uint64_t most,
                                    uint64_t* cut) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const uint32_t row = last_row(offsets, begin, rows, offsets[begin] + most);
  const uint32_t end = row == begin ? begin + 1 : row;
  cut[0] = end;
  cut[1] = offsets[end];
}

/// `count` pairs from pair `first` on, of rows from `begin` to before `end`: positions count from `begin`.
/// The run of what was found for a row tells its places in `list`; where that is null, it has what was found.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_pairs(const uint64_t* offsets, uint32_t begin, uint32_t end, uint64_t first, uint32_t count,
               const uint32_t* found, uint32_t nobody, const Run* runs, const uint32_t* list,
               uint32_t* positions, uint32_t* partners, uint32_t beyond) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    const uint32_t row = last_row(offsets, begin, end - 1, first + i);
    const uint32_t of_key = found[row];
    positions[i] = row - begin;
    partners[i] = of_key == nobody ? beyond : list[runs[of_key].begin + (first + i - offsets[row])];
  }
}

/// flags[p] = value for each of some positions below a limit.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_flag(const uint32_t* positions, uint32_t count, uint32_t limit, uint32_t value, uint8_t* flags) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    if (positions[i] < limit) flags[positions[i]] = static_cast<uint8_t>(value);
  }
}

}  // namespace bamquery
