// Writes back what is dirty in a page cache in the GPU's memory.
#include "driver/core/page_cache/page_cache.hpp"
#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

/// All warps of the grid share the work; any grid will do. Failures go to the error record.
extern "C" __global__ void __launch_bounds__(256)
    flush_cache(const PageCacheView* cache, const QueuePoolView* pool, uint64_t timeout_ns,
                ErrorRecord* errors) {
  const PageCacheView view = *cache;
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const auto queue = shared_pair(*pool, warp);
  PageCache pages(view, errors);
  (void)pages.flush(Lanes::warp(), warp, gridDim.x * blockDim.x / 32, queue, Deadline::in(timeout_ns));
}

}  // namespace bamquery
