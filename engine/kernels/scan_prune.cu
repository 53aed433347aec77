// Which vectors a scan has to read, by the zone map that lies in this GPU's memory.
#include "scan_layout.hpp"
#include "scan_zones.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kThreads = 256;

}  // namespace

/// wanted[v] = 1 for each vector that can hold a row that passes, and was wanted before (`first` is 0) or not
/// asked for yet (1); `nan` is NaN's key.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_prune(const ScanZone* zones, uint32_t vectors, uint64_t nan, const ScanPredicate<uint64_t> predicate,
               uint32_t first, uint32_t* wanted) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    const bool before = first != 0 || wanted[vector] != 0;
    wanted[vector] = before && zones[vector].may_pass(predicate, nan) ? 1 : 0;
  }
}

/// The wanted vectors, whose prefix sums are `before`, out of all: where each is and how many rows it has,
/// and its number among all.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_list_vectors(const uint32_t* wanted, const uint32_t* before, uint32_t vectors, const ScanVector* all,
                      const uint16_t* all_rows, ScanVector* listed, uint16_t* listed_rows,
                      uint32_t* numbers) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    if (wanted[vector] == 0) continue;
    const uint32_t place = before[vector];
    listed[place] = all[vector];
    listed_rows[place] = all_rows[vector];
    numbers[place] = vector;
  }
}

}  // namespace bamquery
