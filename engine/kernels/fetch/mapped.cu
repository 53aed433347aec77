// Single values out of files in the page cache that this GPU sees: it loads them itself, a sector of 32 bytes
// each, where a drive would have to be asked for a block.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

/// One buffer of one column, of which a selection's rows are wanted.
struct ScanMapped {
  ScanItems items;
  const uint8_t* nulls;  ///< Of bitmaps: states of vectors, whose bits are read where they are mixed only.
  byte* target;          ///< A value each; bits become bytes.
  ScanTally* tally;
};
static_assert(sizeof(ScanMapped) == 80);

template <typename T>
__device__ inline void copy_value(const byte* from, byte* to, uint32_t at) {
  reinterpret_cast<T*>(to)[at] = *reinterpret_cast<const T*>(from);
}

__device__ inline bool is_mixed(const ScanMapped& fetch, uint32_t item) {
  if (fetch.nulls == nullptr) return true;
  const uint32_t vector = fetch.items.positions[item >> fetch.items.ends] / kVectorRows;
  return static_cast<Nulls>(fetch.nulls[vector]) == Nulls::kSome;
}

// Whether no item before that is read is in the same block; of a block that is, one item begins it.
__device__ inline bool begins_block(const ScanMapped& fetch, uint32_t item) {
  const ScanItems& items = fetch.items;
  for (uint32_t before = item; before-- != 0;) {
    if (items.piece(before) != items.piece(item) || items.block(before) != items.block(item)) break;
    if (is_mixed(fetch, before)) return false;
  }
  return true;
}

__device__ inline void load_item(const ScanMapped& fetch, uint32_t item) {
  const ScanItems& items = fetch.items;
  const auto* const from =
      reinterpret_cast<const byte*>(items.places[items.piece(item)].map + items.offset(item));
  switch (items.bits) {
    case 1:
      fetch.target[item] =
          byte{static_cast<unsigned char>(static_cast<unsigned char>(*from) >> items.row(item) % 8 & 1)};
      break;
    case 8:
      copy_value<uint8_t>(from, fetch.target, item);
      break;
    case 16:
      copy_value<uint16_t>(from, fetch.target, item);
      break;
    case 32:
      copy_value<uint32_t>(from, fetch.target, item);
      break;
    case 64:
      copy_value<uint64_t>(from, fetch.target, item);
      break;
    default:
      copy_value<uint4>(from, fetch.target, item);
  }
}

}  // namespace

/// `fetches` are `fetch_count` buffers. Each thread has a load of every one of them in flight. Tallies get
/// the sectors that hold what was loaded, which the items have as blocks.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fetch_mapped(const ScanMapped* fetches, uint32_t fetch_count) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t n = 0; n < fetch_count; ++n) {
    const ScanMapped fetch = fetches[n];
    const uint32_t count = fetch.items.items();
    uint32_t blocks = 0;
    for (uint32_t item = blockIdx.x * kThreads + threadIdx.x; item < count; item += step) {
      if (!is_mixed(fetch, item)) continue;
      load_item(fetch, item);
      blocks += begins_block(fetch, item) ? 1 : 0;
    }
    const uint32_t all = __reduce_add_sync(~0u, blocks);
    if (Lanes::lane() != 0 || all == 0) continue;
    atomicAdd(&fetch.tally->commands, static_cast<unsigned long long>(all));
    atomicAdd(&fetch.tally->blocks, static_cast<unsigned long long>(all));
  }
}

}  // namespace bamquery
