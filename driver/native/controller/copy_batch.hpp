// Copies of a batch of commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bamquery {

struct CopyItem {
  std::byte* to;
  const std::byte* from;
  std::uint32_t bytes;
  std::uint32_t command;  ///< Its place in the batch.
};

enum class CopyStores : std::uint8_t {
  kCached,     ///< Through the caches, where a GPU's reads find the data.
  kStreaming,  ///< Past the caches: half the memory traffic where landing buffers fit in no cache.
};

/// Copies every item, in order; streaming stores need AVX2, without it they are cached ones. All
/// stores are done, for other processors and devices too, before a release store that follows.
void copy_batch(std::span<const CopyItem> items, CopyStores stores);

/// Asks for the lines of an item's source that its copy begins with: once for all items, before the first is
/// copied, and no nearer than the second cache, or the lines of a batch drive each other out of the first.
inline void prefetch_source(const CopyItem& item) {
  constexpr std::uint32_t kLine = 64;
  // More lines than this are not in flight at once anyway; hardware prefetches the rest of a run.
  constexpr std::uint32_t kMost = 8 * kLine;
  const std::uint32_t end = item.bytes < kMost ? item.bytes : kMost;
  for (std::uint32_t at = 0; at < end; at += kLine) __builtin_prefetch(item.from + at, 0, 2);
}

}  // namespace bamquery
