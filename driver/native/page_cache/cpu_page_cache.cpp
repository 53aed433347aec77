#include "driver/native/page_cache/cpu_page_cache.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

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

PageCacheConfig checked(std::span<const CpuPageCache::Source> sources, std::uint32_t page_count,
                        std::uint32_t page_bytes) {
  if (sources.empty() || sources.size() > PageId::kMaxDrives) {
    throw std::invalid_argument("page cache: it is of 1 to " + std::to_string(PageId::kMaxDrives) +
                                " drives, not of " + std::to_string(sources.size()));
  }
  PageCacheConfig config{page_count, page_bytes, sources[0].memory->shape().block_bytes};
  for (const CpuPageCache::Source& source : sources) {
    const QueueShape& shape = source.memory->shape();
    if (shape.shared_pairs == 0) throw std::invalid_argument("page cache: there are no shared queue pairs");
    if (page_bytes > shape.slot_bytes) {
      throw std::invalid_argument("page cache: pages of " + std::to_string(page_bytes) +
                                  " bytes do not fit the queue pairs' slots of " +
                                  std::to_string(shape.slot_bytes));
    }
    if (page_bytes < shape.block_bytes) config.block_bytes = 0;  // Not valid.
    config.block_bytes = std::min(config.block_bytes, shape.block_bytes);
  }
  if (!valid(config)) {
    throw std::invalid_argument("page cache: " + std::to_string(page_count) + " pages of " +
                                std::to_string(page_bytes) +
                                " bytes: it takes at least one, a power of two long, of whole blocks");
  }
  return config;
}

// One flush, waited for.
Status make_durable(const ServicedPair<Scope::kDevice>& pair, const Request& request, Deadline deadline) {
  std::uint32_t slot = 0;
  Status status = pair.acquire_slot(deadline, slot);
  if (!status.ok()) return status;
  status = pair.issue(slot, request);
  const bool issued = status.ok();
  if (issued) status = pair.wait(slot, deadline);
  if (!issued || !loses_slot(status)) pair.release_slot(slot);
  return status;
}

}  // namespace

CpuPageCache::CpuPageCache(std::span<const Source> sources, std::uint32_t page_count,
                           std::uint32_t page_bytes) {
  const PageCacheConfig config = checked(sources, page_count, page_bytes);
  for (const Source& source : sources) {
    const std::size_t bytes = source.memory->pool_bytes();
    pool_memory_.push_back(allocate_aligned(bytes));
    drives_.push_back({source.memory->make_pool({pool_memory_.back().get(), bytes}), source.controller});
    activities_.emplace_back(*source.controller);
  }
  cache_memory_ = zeroed(page_cache_bytes(config));
  view_ = make_page_cache(cache_memory_.get(), config);
}

NamespaceShape CpuPageCache::shape_of(const StripeMember& place) const {
  if (place.drive >= drives_.size()) {
    throw std::invalid_argument("page cache: there is no drive " + std::to_string(place.drive) + " among " +
                                std::to_string(drives_.size()));
  }
  auto found = drives_[place.drive].controller->shape_of(place.nsid);
  if (!found) throw std::invalid_argument("there is no namespace " + std::to_string(place.nsid));
  return *std::move(found);
}

CpuPageCache::Queues CpuPageCache::queues() const { return {drives_, thread_number()}; }

Status CpuPageCache::flush(std::span<const StripeMember> places, Deadline deadline,
                           ErrorRecord& errors) const {
  const Queues queues = this->queues();
  PageCache cache(view_, &errors);
  Status first = cache.flush(Lanes::warp(), 0, 1, queues, deadline);
  for (const StripeMember& place : places) {
    const Request request{Opcode::kFlush, place.nsid, 0, 0, place.drive};
    const Status status = make_durable(queues.at(place.drive), request, deadline);
    if (status.ok()) continue;
    record_error(&errors, request, status);
    if (first.ok()) first = status;
  }
  return first;
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

void CpuPageCache::throw_failure(const ErrorRecord& errors, Status status) const {
  if (errors.count != 0) status = Status{errors.status};
  const auto found = drives_[errors.drive].controller->shape_of(errors.nsid);
  const char* verb = errors.opcode == static_cast<std::uint8_t>(Opcode::kWrite)   ? "write"
                     : errors.opcode == static_cast<std::uint8_t>(Opcode::kFlush) ? "flush"
                                                                                  : "read";
  throw NvmeError(found ? found->name : "", std::string(verb) + " failed: " + status_text(status),
                  errors.nsid, errors.lba, status, drives_.size() == 1 ? -1 : errors.drive);
}

}  // namespace bamquery
