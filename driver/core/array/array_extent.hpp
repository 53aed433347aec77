// A run of bytes that holds a buffer: of a namespace, or of several as one address space.
#pragma once

#include "driver/core/page_cache/page_cache_view.hpp"

namespace bamquery {

/// Namespaces as one address space: stripe s is the (s / count)th of namespace s % count.
struct StripeMember {
  uint32_t drive;  ///< Request::drive
  uint32_t nsid;
};

struct ArrayExtent {
  uint64_t lba;     ///< The cache's block that holds the first byte.
  uint64_t offset;  ///< Of the first byte in that block and those after it; any size.
  uint64_t bytes;   ///< Within the namespace: offset + bytes do not go beyond its end.
  uint64_t
      namespace_blocks;  ///< The cache's blocks that there are, so that the last page is not read too far.
  uint32_t nsid;         ///< Of the namespace, where there is one.
  uint32_t drive = 0;    ///< The same: Request::drive.
  const StripeMember* stripes = nullptr;  ///< `members` of them, in memory of the side that runs.
  uint32_t members = 0;                   ///< How many are striped; 0: there is one namespace.
  uint32_t stripe_shift = 0;              ///< log2 of the pages of a stripe: no page is split.

  /// The cached page that holds the extent's byte number `at`.
  BAMQUERY_CORE PageId page(const PageCacheView& cache, uint64_t at) const {
    const uint64_t blocks = cache.page_bytes / cache.block_bytes;
    const uint64_t number = position(cache, at) / cache.page_bytes;
    if (members != 0) return striped(number, static_cast<uint32_t>(blocks));
    const uint64_t left = namespace_blocks - number * blocks;
    return {nsid, static_cast<uint32_t>(left < blocks ? left : blocks), number, drive};
  }

  /// Where in that page.
  BAMQUERY_CORE uint32_t place(const PageCacheView& cache, uint64_t at) const {
    return static_cast<uint32_t>(position(cache, at) & (cache.page_bytes - 1));
  }

  /// Its byte in the namespace, or in the address space that several make.
  BAMQUERY_CORE uint64_t position(const PageCacheView& cache, uint64_t at) const {
    return lba * cache.block_bytes + offset + at;
  }

 private:
  // Every page is whole: the address space ends with the last whole stripe of the smallest namespace.
  BAMQUERY_CORE PageId striped(uint64_t number, uint32_t blocks) const {
    const uint64_t stripe = number >> stripe_shift;
    const StripeMember member = stripes[stripe % members];
    const uint64_t within = number & ((uint64_t{1} << stripe_shift) - 1);
    return {member.nsid, blocks, (stripe / members) << stripe_shift | within, member.drive};
  }
};

}  // namespace bamquery
