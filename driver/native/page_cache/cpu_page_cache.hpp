// A page cache in this process's memory, over the shared queue pairs of one controller or of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/core/array/array_extent.hpp"
#include "driver/core/error_record.hpp"
#include "driver/core/page_cache/page_cache.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"
#include "driver/native/queues/serviced_pairs.hpp"

namespace bamquery {

/// Any number of threads may use it; each takes the shared pairs that its number falls to.
class CpuPageCache {
 public:
  using Queues = ServicedPairs;

  /// Queue pairs, and who serves them. Number i of those that a cache is made of is drive i of its pages.
  struct Source {
    QueueMemory* memory;
    Controller* controller;
  };

  /// Their rings must be fresh, and are this cache's alone. Memory and controllers outlive it; it keeps the
  /// controllers awake. std::invalid_argument names what is wrong with the sizes.
  CpuPageCache(std::span<const Source> sources, std::uint32_t page_count, std::uint32_t page_bytes);
  CpuPageCache(const CpuPageCache&) = delete;
  CpuPageCache& operator=(const CpuPageCache&) = delete;

  const PageCacheView& view() const { return view_; }
  std::uint32_t drives() const { return static_cast<std::uint32_t>(drives_.size()); }
  /// std::invalid_argument: there are not so many drives, or the namespace is not there.
  NamespaceShape shape_of(const StripeMember& place) const;
  Queues queues() const;

  /// Writes back every dirty page, then makes what was written to these namespaces durable. The first failure
  /// is in `errors`; what can be done is done, whichever drive fails.
  Status flush(std::span<const StripeMember> places, Deadline deadline, ErrorRecord& errors) const;

  /// Since the beginning. Threads may go on counting meanwhile.
  CacheCounters statistics() const;

  /// Throws what `errors` recorded first, or `status` where it recorded nothing: NvmeError, which names the
  /// namespace's file or drive.
  [[noreturn]] void throw_failure(const ErrorRecord& errors, Status status) const;

 private:
  std::vector<AlignedBuffer> pool_memory_;
  std::vector<ServicedPairs::Drive> drives_;
  std::vector<Controller::Activity> activities_;
  AlignedBuffer cache_memory_;
  PageCacheView view_;
};

}  // namespace bamquery
