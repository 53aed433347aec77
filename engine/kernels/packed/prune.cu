// Which parts of packed vectors a scan has to read, by bounds that lie in this GPU's memory.
#include "engine/kernels/packed/packed_parts.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

/// Of each vector that is wanted, leaves in its byte of `masks` those parts that can hold a row that passes;
/// a vector without any is not wanted. `packed` has no payloads, and BAMQUERY_SCAN_TYPE is the values' type.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_prune(const ScanPacked packed, const PackedPartBounds* bounds, uint32_t vectors,
                      const ScanPredicateOf<BAMQUERY_SCAN_TYPE> predicate, uint32_t* wanted, uint8_t* masks) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    if (wanted[vector] == 0) continue;
    const PackedReader<BAMQUERY_SCAN_TYPE> reader(packed, vector);
    const uint32_t left = masks[vector] & packed_may_pass(reader, bounds[vector], predicate);
    masks[vector] = static_cast<uint8_t>(left);
    if (left == 0) wanted[vector] = 0;
  }
}

}  // namespace bamquery
