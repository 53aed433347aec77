// A page cache in this process's memory, over the shared queue pairs of a controller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/core/error_record.hpp"
#include "driver/core/page_cache/page_cache.hpp"
#include "driver/core/queues/queue_pool.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"
#include "driver/native/queues/serviced_pair.hpp"

namespace bamquery {

/// Any number of threads may use it; each takes the shared pair that its number falls to.
class CpuPageCache {
 public:
  using Pair = ServicedPair<Scope::kDevice>;

  /// The rings must be fresh, and are this cache's alone. Memory and controller outlive it; it keeps the
  /// controller's threads awake. std::invalid_argument names what is wrong with the sizes.
  CpuPageCache(QueueMemory& memory, Controller& controller, std::uint32_t page_count,
               std::uint32_t page_bytes);
  CpuPageCache(const CpuPageCache&) = delete;
  CpuPageCache& operator=(const CpuPageCache&) = delete;

  const PageCacheView& view() const { return view_; }
  Controller& controller() const { return controller_; }
  Pair pair() const;

  /// Writes back every dirty page, then makes what was written to a namespace durable (nsid 0: none). The
  /// first failure is in `errors`.
  Status flush(std::uint32_t nsid, Deadline deadline, ErrorRecord& errors) const;

  /// Since the beginning. Threads may go on counting meanwhile.
  CacheCounters statistics() const;

 private:
  Controller& controller_;
  Controller::Activity activity_;
  AlignedBuffer pool_memory_;
  QueuePoolView pool_;
  AlignedBuffer cache_memory_;
  PageCacheView view_;
};

/// Throws what `errors` recorded first, or `status` where it recorded nothing: NvmeError, which names the
/// namespace's file.
[[noreturn]] void throw_failure(const Controller& controller, const ErrorRecord& errors, Status status);

}  // namespace bamquery
