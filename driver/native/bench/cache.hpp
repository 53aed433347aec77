// Pages read through the page cache, and elements through an array over it, every one compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/page_cache/page_cache.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/bench/bench_rings.hpp"
#include "driver/native/bench/clients.hpp"

namespace bamquery {

/// A page cache in memory of this process that reads from a benchmark's namespaces.
class BenchCache {
 public:
  /// `cache_bytes` of pages; metadata comes on top.
  BenchCache(std::uint64_t cache_bytes, std::uint32_t page_bytes, std::uint32_t block_bytes,
             std::uint64_t extent_bytes);

  const PageCacheView& view() const { return view_; }
  ErrorRecord* errors() { return &errors_; }
  std::uint64_t pages() const { return extent_bytes_ / view_.page_bytes; }
  std::uint64_t extent_bytes() const { return extent_bytes_; }

  /// All stripes together; nobody may be using the cache.
  CacheCounters counters() const;

 private:
  std::uint64_t extent_bytes_;
  AlignedBuffer memory_;
  PageCacheView view_;
  ErrorRecord errors_{};
};

/// What the clients of a benchmark of the cache do.
struct CacheJob {
  AccessPattern pattern;  ///< Of pages.
  std::uint64_t seed;
  bool verify;
};

/// What the clients of a benchmark of arrays do. The pattern is of elements.
struct ArrayJob {
  AccessPattern pattern;
  std::string element;  ///< int8, ..., float64.
  std::uint64_t seed;
  bool verify;
};

/// Pins a page, compares it (or copies it where nothing is compared), and lets it go. Drive i holds the
/// content of the job's seed + 2 i, from its first byte on.
BenchClients::Work cache_work(const CacheJob& job, BenchCache& cache, BenchDrives& drives);

/// Gathers elements, some hundreds a call. Throws std::invalid_argument for an element that is none.
BenchClients::Work array_work(const ArrayJob& job, BenchCache& cache, BenchDrives& drives);

/// Touches every page once, in order, by one client; throws StorageError where that fails.
void warm_cache(BenchCache& cache, BenchDrives& drives);

}  // namespace bamquery
