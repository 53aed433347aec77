// Writes back what is dirty in a page cache in the GPU's memory.
#include "driver/core/page_cache/page_cache.hpp"
#include "driver/core/queues/drive_queues.hpp"

namespace bamquery {

/// All warps of the grid share the work; any grid will do. Pages go to the drives that `pools` are of.
/// Failures go to the error record, and do not keep other pages from being written.
extern "C" __global__ void __launch_bounds__(256)
    flush_cache(const PageCacheView* cache, const QueuePoolView* pools, uint32_t drives, uint64_t timeout_ns,
                ErrorRecord* errors) {
  const PageCacheView view = *cache;
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const SharedPairs queue(pools, drives, warp);
  PageCache pages(view, errors);
  (void)pages.flush(Lanes::warp(), warp, gridDim.x * blockDim.x / 32, queue, Deadline::in(timeout_ns));
}

}  // namespace bamquery
