#include "driver/native/page_cache/cpu_page_cache.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "driver/native/errors.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

AlignedBuffer zeroed(std::size_t bytes) {
  AlignedBuffer memory = allocate_aligned(bytes);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

// Numbers of the threads that have come by, so that they spread over the pairs.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

PageCacheConfig checked(const QueueShape& shape, std::uint32_t page_count, std::uint32_t page_bytes) {
  const PageCacheConfig config{page_count, page_bytes, shape.block_bytes};
  if (shape.shared_pairs == 0) throw std::invalid_argument("page cache: there are no shared queue pairs");
  if (page_bytes > shape.slot_bytes) {
    throw std::invalid_argument("page cache: pages of " + std::to_string(page_bytes) +
                                " bytes do not fit the queue pairs' slots of " +
                                std::to_string(shape.slot_bytes));
  }
  if (!valid(config)) {
    throw std::invalid_argument("page cache: " + std::to_string(page_count) + " pages of " +
                                std::to_string(page_bytes) +
                                " bytes: it takes at least one, a power of two long, of whole blocks");
  }
  return config;
}

}  // namespace

CpuPageCache::CpuPageCache(QueueMemory& memory, Controller& controller, std::uint32_t page_count,
                           std::uint32_t page_bytes)
    : controller_(controller), activity_(controller) {
  const PageCacheConfig config = checked(memory.shape(), page_count, page_bytes);
  pool_memory_ = allocate_aligned(memory.pool_bytes());
  pool_ = memory.make_pool({pool_memory_.get(), memory.pool_bytes()});
  cache_memory_ = zeroed(page_cache_bytes(config));
  view_ = make_page_cache(cache_memory_.get(), config);
}

CpuPageCache::Pair CpuPageCache::pair() const { return {shared_pair(pool_, thread_number()), controller_}; }

Status CpuPageCache::flush(std::uint32_t nsid, Deadline deadline, ErrorRecord& errors) const {
  const Pair queue = pair();
  PageCache cache(view_, &errors);
  Status status = cache.flush(Lanes::warp(), 0, 1, queue, deadline);
  if (!status.ok() || nsid == 0) return status;
  const Request request{Opcode::kFlush, nsid, 0, 0};
  std::uint32_t slot = 0;
  status = queue.acquire_slot(deadline, slot);
  if (status.ok()) {
    status = queue.issue(slot, request);
    const bool issued = status.ok();
    if (issued) status = queue.wait(slot, deadline);
    if (!issued || !loses_slot(status)) queue.release_slot(slot);
  }
  if (!status.ok()) record_error(&errors, request, status);
  return status;
}

CacheCounters CpuPageCache::statistics() const {
  CacheCounters sum{};
  for (std::uint32_t stripe = 0; stripe < PageCacheView::kStripes; ++stripe) {
    const auto add = [&](std::uint64_t CacheCounters::* counter) {
      sum.*counter +=
          AtomicRef<std::uint64_t, Scope::kDevice>(view_.counters[stripe].*counter).load(kRelaxed);
    };
    for (const auto counter :
         {&CacheCounters::hits, &CacheCounters::misses, &CacheCounters::coalesced, &CacheCounters::evictions,
          &CacheCounters::write_backs, &CacheCounters::failures}) {
      add(counter);
    }
  }
  return sum;
}

void throw_failure(const Controller& controller, const ErrorRecord& errors, Status status) {
  if (errors.count != 0) status = Status{errors.status};
  const auto found = controller.shape_of(errors.nsid);
  const char* verb = errors.opcode == static_cast<std::uint8_t>(Opcode::kWrite)   ? "write"
                     : errors.opcode == static_cast<std::uint8_t>(Opcode::kFlush) ? "flush"
                                                                                  : "read";
  throw NvmeError(found ? found->name : "", std::string(verb) + " failed: " + status_text(status),
                  errors.nsid, errors.lba, status);
}

}  // namespace bamquery
