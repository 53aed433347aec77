// The page cache's memory: where each part lies, and how much there is of it.
#pragma once

#include "driver/core/page_cache/page_slot.hpp"

namespace bamquery {

/// What the cache did. Each stripe is a cache line of its own, so that counting costs no waiting in line.
struct alignas(64) CacheCounters {
  uint64_t hits;         ///< The page was there.
  uint64_t misses;       ///< A read was issued for the page.
  uint64_t coalesced;    ///< Somebody else's read of the page was waited for.
  uint64_t evictions;    ///< A page made room for another.
  uint64_t write_backs;  ///< Dirty pages written.
  uint64_t failures;     ///< Reads and writes that failed.
};
static_assert(sizeof(CacheCounters) == 64);

struct PageCacheConfig {
  uint32_t page_count;  ///< 1 to 2^30 - 1.
  uint32_t page_bytes;  ///< A power of two, at least block_bytes; at most a queue pair's slot_bytes.
  uint32_t
      block_bytes;  ///< A power of two, at least 512: the smallest LBA of those whose pages are cached here.
};

/// All pointers lie in one block of memory; see make_page_cache().
struct PageCacheView {
  static constexpr uint32_t kStripes = 32;

  byte* pages;
  PageSlot* slots;
  CacheCounters* counters;  ///< kStripes of them.
  uint32_t* heads;          ///< Per bucket, for PageTable.
  uint32_t* nexts;          ///< Per slot, for PageTable.
  uint32_t* blocks;         ///< Per slot: blocks of its page that the namespace has.
  uint32_t* hand;           ///< The clock's.
  uint32_t page_count;
  uint32_t page_bytes;
  uint32_t block_bytes;
  uint32_t reserved;
};

/// Bytes of metadata beside each page, all told.
inline constexpr uint32_t kPageMetadataBytes = sizeof(PageSlot) + 3 * sizeof(uint32_t);

BAMQUERY_CORE constexpr bool valid(const PageCacheConfig& config) {
  const bool powers = (config.page_bytes & (config.page_bytes - 1)) == 0 &&
                      (config.block_bytes & (config.block_bytes - 1)) == 0;
  return powers && config.block_bytes >= 512 && config.page_bytes >= config.block_bytes &&
         config.page_count != 0 && config.page_count < (1u << 30);
}

/// Bytes of the block of memory that holds a cache.
BAMQUERY_CORE constexpr uint64_t page_cache_bytes(const PageCacheConfig& config) {
  return static_cast<uint64_t>(config.page_count) * (config.page_bytes + kPageMetadataBytes) +
         PageCacheView::kStripes * sizeof(CacheCounters) + sizeof(uint32_t);
}

/// Lays a cache out in `memory`: page_cache_bytes(), aligned to 4096, all zeros, which is an empty cache.
/// Does not touch the memory, so a CPU can lay out a GPU's.
BAMQUERY_CORE PageCacheView make_page_cache(byte* memory, const PageCacheConfig& config) {
  PageCacheView view{};
  const auto take = [&memory](uint64_t bytes) {
    byte* const start = memory;
    memory += bytes;
    return start;
  };
  // From the strictest alignment to the least, so that nothing needs padding.
  const uint64_t count = config.page_count;
  view.pages = take(count * config.page_bytes);
  view.counters = reinterpret_cast<CacheCounters*>(take(PageCacheView::kStripes * sizeof(CacheCounters)));
  view.slots = reinterpret_cast<PageSlot*>(take(count * sizeof(PageSlot)));
  view.heads = reinterpret_cast<uint32_t*>(take(count * sizeof(uint32_t)));
  view.nexts = reinterpret_cast<uint32_t*>(take(count * sizeof(uint32_t)));
  view.blocks = reinterpret_cast<uint32_t*>(take(count * sizeof(uint32_t)));
  view.hand = reinterpret_cast<uint32_t*>(take(sizeof(uint32_t)));
  view.page_count = config.page_count;
  view.page_bytes = config.page_bytes;
  view.block_bytes = config.block_bytes;
  return view;
}

/// Adds one to a counter, in a slot's stripe.
BAMQUERY_CORE void count(const PageCacheView& view, uint32_t slot, uint64_t CacheCounters::* counter) {
  uint64_t& word = view.counters[slot % PageCacheView::kStripes].*counter;
  AtomicRef<uint64_t, Scope::kDevice>(word).fetch_add(1, kRelaxed);  // Relaxed: orders nothing.
}

}  // namespace bamquery
