// Rows in groups by their keys, numbered in the order in which they first appear.
#include "engine/kernels/keys/key_columns.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_prefix.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kNobody = ~0u;  // of a place that no key has yet

/// A number of 4 or 8 bytes.
__device__ inline int64_t signed_key(const KeyColumn& column, uint64_t row) {
  return column.width == 4 ? reinterpret_cast<const int32_t*>(column.values)[row]
                           : reinterpret_cast<const int64_t*>(column.values)[row];
}

}  // namespace

/// A table of rows, one for each key: the first that has it. `places[row]` is where the row's key is.
///
/// The table has `mask` + 1 places, all kNobody at first. Where more than `most` of them are taken, `full` is
/// set, and what was found is of no use.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_enter(KeyColumns keys, uint32_t rows, uint32_t* table, uint32_t mask, uint32_t most, uint32_t* taken,
               uint32_t* full, uint32_t* places) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    if (*full != 0) return;
    uint32_t place = static_cast<uint32_t>(hash_row(keys, row)) & mask;
    while (true) {
      uint32_t there = table[place];
      if (there == kNobody) {
        there = atomicCAS(table + place, kNobody, row);
        if (there == kNobody) {
          if (atomicAdd(taken, 1u) >= most) *full = 1;
          break;
        }
      }
      if (is_equal_row(keys, there, keys, row)) {
        if (row < there) atomicMin(table + place, row);
        break;
      }
      place = (place + 1) & mask;
      // Rows that are at work when half of the places are taken may take all others.
      if (*static_cast<const volatile uint32_t*>(full) != 0) return;
    }
    places[row] = place;
  }
}

/// Which rows are the first of their group: a bit each, by vectors of 1,024, of which `counts` has how many;
/// `before` has for each word how many there are in words before it in its vector. A warp a vector. Nothing
/// where the table is `full`: rows have no places then.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_first(const uint32_t* table, const uint32_t* places, uint32_t rows, const uint32_t* full,
               uint32_t* bits, uint32_t* before, uint32_t* counts) {
  if (*full != 0) return;
  const uint32_t lane = Lanes::lane();
  const uint32_t vectors = rows / 1024 + (rows % 1024 != 0 ? 1 : 0);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    uint32_t mine = 0;
    for (uint32_t word = 0; word < 32; ++word) {
      const uint64_t row = static_cast<uint64_t>(vector) * 1024 + word * 32 + lane;
      const uint32_t found = __ballot_sync(~0u, row < rows && table[places[row < rows ? row : 0]] == row);
      if (lane == word) mine = found;
    }
    const uint32_t own = static_cast<uint32_t>(__popc(mine));
    const uint32_t up_to = warp_prefix(own);
    bits[static_cast<uint64_t>(vector) * 32 + lane] = mine;
    before[static_cast<uint64_t>(vector) * 32 + lane] = up_to - own;
    if (lane == 31) counts[vector] = up_to;
  }
}

/// Each row's group, and each group's first row. `offsets[vector]` is how many groups began before it.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_number(const uint32_t* table, const uint32_t* places, uint32_t rows, const uint32_t* bits,
                const uint32_t* before, const uint32_t* offsets, int32_t* codes, int32_t* firsts) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    const uint32_t first = table[places[row]];
    const uint32_t earlier = bits[first / 32] & ((1u << first % 32) - 1);
    const uint32_t code = offsets[first / 1024] + before[first / 32] + static_cast<uint32_t>(__popc(earlier));
    codes[row] = static_cast<int32_t>(code);
    if (first == row) firsts[code] = static_cast<int32_t>(row);
  }
}

/// As `keys_first` and what is before it, for rows that come ordered by one key that is never null: the first
/// row of each run of equal keys. `unordered` is set where some key is less than the one before it; what was
/// found is of no use then.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_runs(KeyColumn key, uint32_t rows, uint32_t* unordered, uint32_t* bits, uint32_t* before,
              uint32_t* counts) {
  const uint32_t lane = Lanes::lane();
  const uint32_t vectors = rows / 1024 + (rows % 1024 != 0 ? 1 : 0);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    // All lanes go, or none does.
    if (__shfl_sync(~0u, *static_cast<const volatile uint32_t*>(unordered), 0) != 0) return;
    uint32_t mine = 0;
    bool less = false;
    for (uint32_t word = 0; word < 32; ++word) {
      const uint64_t row = static_cast<uint64_t>(vector) * 1024 + word * 32 + lane;
      bool is_first = row == 0;
      if (row < rows && row > 0) {
        const int64_t own = signed_key(key, row);
        const int64_t last = signed_key(key, row - 1);
        is_first = own != last;
        less = less || own < last;
      }
      const uint32_t found = __ballot_sync(~0u, is_first && row < rows);
      if (lane == word) mine = found;
    }
    if (less) *unordered = 1;
    const uint32_t own = static_cast<uint32_t>(__popc(mine));
    const uint32_t up_to = warp_prefix(own);
    bits[static_cast<uint64_t>(vector) * 32 + lane] = mine;
    before[static_cast<uint64_t>(vector) * 32 + lane] = up_to - own;
    if (lane == 31) counts[vector] = up_to;
  }
}

/// As `keys_number`, for the runs that `keys_runs` found.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_number_runs(uint32_t rows, const uint32_t* bits, const uint32_t* before, const uint32_t* offsets,
                     int32_t* codes, int32_t* firsts) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    const uint32_t word = bits[row / 32];
    const uint32_t up_to = word & (~0u >> (31 - row % 32));
    const uint32_t code = offsets[row / 1024] + before[row / 32] + static_cast<uint32_t>(__popc(up_to)) - 1;
    codes[row] = static_cast<int32_t>(code);
    if ((word >> row % 32 & 1) != 0) firsts[code] = static_cast<int32_t>(row);
  }
}

}  // namespace bamquery
