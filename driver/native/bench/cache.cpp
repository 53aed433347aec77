#include "driver/native/bench/cache.hpp"

#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "driver/core/array/array.hpp"
#include "driver/core/page_cache/page_guard.hpp"
#include "driver/core/queues/queue_pool.hpp"
#include "driver/native/bench/backing.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/queues/serviced_pair.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kMostErrors = 1000;
constexpr std::size_t kGatherElements = 512;

// Who waits for a command of a controller without threads does its work.
using ServingPair = ServicedPair<Scope::kBlock>;

// Runs `work(pair)` with a leased queue pair.
void with_pair(BenchRings& rings, ClientTally& tally, const std::function<void(ServingPair&)>& work) {
  const AlignedBuffer flags = allocate_aligned(rings.pool().flags_bytes);
  BlockLease lease(rings.pool(), flags.get());
  const Status leased = lease.begin(Deadline::in(rings.deadline_ns()));
  if (!leased.ok()) {
    tally.fail("no queue pair: " + status_text(leased));
    return;
  }
  ServingPair pair(lease.pair(), rings.controller());
  work(pair);
  const Status ended = lease.end(Deadline::in(rings.deadline_ns()));
  if (!ended.ok()) tally.fail("commands were left: " + status_text(ended));
}

// The bits that an element at a byte offset has.
template <typename T>
bool element_is_right(T value, std::uint64_t seed, std::uint64_t offset) {
  const auto word_place = static_cast<std::uint32_t>(offset % kContentSectorBytes / 8);
  const std::uint64_t word = content_word(content_key(seed, offset / kContentSectorBytes), word_place);
  T expected;
  std::memcpy(&expected, reinterpret_cast<const std::byte*>(&word) + offset % 8, sizeof(T));
  return std::memcmp(&value, &expected, sizeof(T)) == 0;
}

template <typename T>
void gather(const ArrayJob& job, BenchCache& cache, BenchRings& rings, std::uint32_t client,
            const std::atomic<bool>& stop, ClientTally& tally) {
  with_pair(rings, tally, [&](ServingPair& pair) {
    const std::uint64_t blocks = cache.extent_bytes() / cache.view().block_bytes;
    const ArrayExtent extent{0, 0, cache.extent_bytes(), blocks, rings.nsid(), 0};
    const ArrayView view{
        cache.view(), extent, cache.errors(), cache.extent_bytes() / sizeof(T), rings.deadline_ns(), 0, 0};
    Array<T, ServingPair> array(view, pair);
    std::vector<std::uint64_t> indices(kGatherElements);
    std::vector<T> values(kGatherElements);
    // Relaxed: `stop` only says to hurry.
    for (std::uint64_t asked = 0; !stop.load(std::memory_order_relaxed) && tally.errors < kMostErrors;) {
      for (std::uint64_t& index : indices) index = job.pattern.block(client, asked++);
      const Status status = array.gather(Lanes::warp(), 0, 1, indices.data(), values.data(), indices.size());
      if (!status.ok()) {
        tally.fail("gather: " + status_text(status));
        continue;
      }
      tally.add_many(indices.size(), indices.size() * sizeof(T));
      if (!job.verify) continue;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::uint64_t offset = indices[i] * sizeof(T);
        if (!element_is_right(values[i], job.seed, offset)) tally.mismatch(offset);
      }
    }
  });
}

using Gather = void (*)(const ArrayJob&, BenchCache&, BenchRings&, std::uint32_t, const std::atomic<bool>&,
                        ClientTally&);

Gather gather_of(const std::string& element) {
  if (element == "int8") return &gather<std::int8_t>;
  if (element == "int16") return &gather<std::int16_t>;
  if (element == "int32") return &gather<std::int32_t>;
  if (element == "int64") return &gather<std::int64_t>;
  if (element == "uint8") return &gather<std::uint8_t>;
  if (element == "uint16") return &gather<std::uint16_t>;
  if (element == "uint32") return &gather<std::uint32_t>;
  if (element == "uint64") return &gather<std::uint64_t>;
  if (element == "float32") return &gather<float>;
  if (element == "float64") return &gather<double>;
  throw std::invalid_argument("no such element: " + element);
}

// Zeros, as an empty cache is; huge pages where there are any.
AlignedBuffer zeroed(std::uint64_t bytes) {
  AlignedBuffer memory = allocate_aligned(static_cast<std::size_t>(bytes));
  std::memset(memory.get(), 0, static_cast<std::size_t>(bytes));
  return memory;
}

PageCacheConfig config_of(std::uint64_t cache_bytes, std::uint32_t page_bytes, std::uint32_t block_bytes) {
  const PageCacheConfig config{static_cast<std::uint32_t>(cache_bytes / page_bytes), page_bytes, block_bytes};
  if (cache_bytes / page_bytes >= 1u << 30 || !valid(config)) {
    throw std::invalid_argument("no such page cache");
  }
  return config;
}

}  // namespace

BenchCache::BenchCache(std::uint64_t cache_bytes, std::uint32_t page_bytes, std::uint32_t block_bytes,
                       std::uint64_t extent_bytes)
    : extent_bytes_(extent_bytes),
      memory_(zeroed(page_cache_bytes(config_of(cache_bytes, page_bytes, block_bytes)))),
      view_(make_page_cache(memory_.get(), config_of(cache_bytes, page_bytes, block_bytes))) {}

PageId BenchCache::page(std::uint32_t nsid, std::uint64_t number) const {
  return {nsid, view_.page_bytes / view_.block_bytes, number};
}

CacheCounters BenchCache::counters() const {
  CacheCounters sum{};
  for (std::uint32_t i = 0; i < PageCacheView::kStripes; ++i) {
    const CacheCounters& stripe = view_.counters[i];
    sum.hits += stripe.hits;
    sum.misses += stripe.misses;
    sum.coalesced += stripe.coalesced;
    sum.evictions += stripe.evictions;
    sum.write_backs += stripe.write_backs;
    sum.failures += stripe.failures;
  }
  return sum;
}

BenchClients::Work cache_work(const CacheJob& job, BenchCache& cache, BenchRings& rings) {
  return [job, &cache, &rings](std::uint32_t client, const std::atomic<bool>& stop, ClientTally& tally) {
    with_pair(rings, tally, [&](ServingPair& pair) {
      PageCache pages(cache.view(), cache.errors());
      const std::uint32_t page_bytes = cache.view().page_bytes;
      std::vector<std::byte> copy(page_bytes);
      // Relaxed: `stop` only says to hurry.
      for (std::uint64_t count = 0; !stop.load(std::memory_order_relaxed) && tally.errors < kMostErrors;
           ++count) {
        const std::uint64_t number = job.pattern.block(client, count);
        const std::uint64_t start = now_ns();
        const ReadGuard guard =
            ReadGuard::one(pages, Lanes::warp(), cache.page(rings.nsid(), number), pair, rings.deadline_ns());
        if (!guard.status().ok()) {
          tally.fail("page " + std::to_string(number) + ": " + status_text(guard.status()));
          continue;
        }
        tally.add(page_bytes, now_ns() - start);
        if (!job.verify) {
          std::memcpy(copy.data(), guard.data(), page_bytes);
          continue;
        }
        const std::uint64_t offset = number * page_bytes;
        const std::int64_t wrong =
            find_wrong({guard.data(), page_bytes}, job.seed, offset / kContentSectorBytes);
        if (wrong >= 0) tally.mismatch(offset + static_cast<std::uint64_t>(wrong));
      }
    });
  };
}

BenchClients::Work array_work(const ArrayJob& job, BenchCache& cache, BenchRings& rings) {
  const Gather work = gather_of(job.element);
  return [job, work, &cache, &rings](std::uint32_t client, const std::atomic<bool>& stop,
                                     ClientTally& tally) { work(job, cache, rings, client, stop, tally); };
}

void warm_cache(BenchCache& cache, BenchRings& rings) {
  ClientTally tally;
  with_pair(rings, tally, [&](ServingPair& pair) {
    PageCache pages(cache.view(), cache.errors());
    for (std::uint64_t number = 0; number < cache.pages() && tally.errors == 0; ++number) {
      const ReadGuard guard =
          ReadGuard::one(pages, Lanes::warp(), cache.page(rings.nsid(), number), pair, rings.deadline_ns());
      if (!guard.status().ok())
        tally.fail("page " + std::to_string(number) + ": " + status_text(guard.status()));
    }
  });
  if (tally.errors != 0) throw StorageError("", "the cache cannot be warmed: " + tally.first_error);
}

}  // namespace bamquery
