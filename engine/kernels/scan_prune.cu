// Which vectors a scan has to read, by the zone map that lies in this GPU's memory.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/scan_zones.hpp"

namespace bamquery {

/// wanted[v] = 1 for each vector that can hold a row that passes, and was wanted before (`first` is 0) or not
/// asked for yet (1); `nan` is NaN's key. With `parts`, only those that can are left in its byte of `masks`,
/// and a vector without any is not wanted.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_prune(const ScanZone* zones, const ScanParts* parts, uint32_t vectors, uint64_t nan,
               const ScanPredicate<uint64_t> predicate, uint32_t first, uint32_t* wanted, uint8_t* masks) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    const bool before = first != 0 || wanted[vector] != 0;
    bool passes = before && zones[vector].may_pass(predicate, nan);
    if (passes && parts != nullptr) {
      const uint32_t left = masks[vector] & parts[vector].may_pass(zones[vector], predicate, nan);
      masks[vector] = static_cast<uint8_t>(left);
      passes = left != 0;
    }
    wanted[vector] = passes ? 1 : 0;
  }
}

/// The wanted vectors, whose prefix sums are `before`, out of all: where each is and how many rows it has,
/// and its number among all. With `masks`, also their parts, which `parts` (zero before) counts.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_list_vectors(const uint32_t* wanted, const uint32_t* before, uint32_t vectors, const ScanVector* all,
                      const uint16_t* all_rows, const uint8_t* masks, ScanVector* listed,
                      uint16_t* listed_rows, uint32_t* numbers, uint8_t* listed_masks, uint32_t* parts) {
  const uint32_t step = gridDim.x * kThreads;
  uint32_t mine = 0;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    if (wanted[vector] == 0) continue;
    const uint32_t place = before[vector];
    listed[place] = all[vector];
    listed_rows[place] = all_rows[vector];
    numbers[place] = vector;
    if (masks == nullptr) continue;
    listed_masks[place] = masks[vector];
    mine += __popc(masks[vector]);
  }
  __syncwarp();
  mine = __reduce_add_sync(~0u, mine);
  if (Lanes::leads() && mine != 0) atomicAdd(parts, mine);
}

}  // namespace bamquery
