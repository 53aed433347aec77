// A run of a namespace's blocks that holds a buffer.
#pragma once

#include "driver/core/page_cache/page_cache_view.hpp"

namespace bamquery {

struct ArrayExtent {
  uint64_t lba;               ///< Block that holds the first byte.
  uint64_t offset;            ///< Of the first byte in that block and those after it; any size.
  uint64_t bytes;             ///< Within the namespace: offset + bytes do not go beyond its end.
  uint64_t namespace_blocks;  ///< What the namespace has, so that its last page is not read too far.
  uint32_t nsid;
  uint32_t reserved;

  /// The cached page that holds the extent's byte number `at`.
  BAMQUERY_CORE PageId page(const PageCacheView& cache, uint64_t at) const {
    const uint64_t blocks = cache.page_bytes / cache.block_bytes;
    const uint64_t number = position(cache, at) / cache.page_bytes;
    const uint64_t left = namespace_blocks - number * blocks;
    return {nsid, static_cast<uint32_t>(left < blocks ? left : blocks), number};
  }

  /// Where in that page.
  BAMQUERY_CORE uint32_t place(const PageCacheView& cache, uint64_t at) const {
    return static_cast<uint32_t>(position(cache, at) & (cache.page_bytes - 1));
  }

  /// Its byte in the namespace.
  BAMQUERY_CORE uint64_t position(const PageCacheView& cache, uint64_t at) const {
    return lba * cache.block_bytes + offset + at;
  }
};

}  // namespace bamquery
