// Fetches the blocks that hold a selection's rows, by NVMe commands written here, and scatters the values.
//
// One queue pair a thread block: its last warp sweeps completions, all others take the next blocks of any
// column, 32 at a time, so that nobody waits for the slowest.
#include "engine/kernels/fetch/fetch.hpp"

namespace bamquery {

namespace {

template <typename T>
__device__ inline void copy_value(const byte* from, byte* to, uint32_t at) {
  reinterpret_cast<T*>(to)[at] = *reinterpret_cast<const T*>(from);
}

// 8 bytes from byte `at` of a block on, as far as it has them; of others zeros.
__device__ inline uint64_t word_at(const byte* block, uint32_t at, uint32_t block_bytes) {
  const auto* const words = reinterpret_cast<const uint64_t*>(block);
  const uint32_t shift = 8 * (at % 8);
  uint64_t found = words[at / 8] >> shift;
  if (shift != 0 && at + 8 <= block_bytes) found |= words[at / 8 + 1] << (64 - shift);
  return found;
}

// Items [begin, end) out of the blocks from `first` on, which have landed. All lanes call.
__device__ inline void scatter(const ScanFetch& fetch, const ScanWarp& warp, uint32_t first, uint32_t begin,
                               uint32_t end) {
  const ScanItems& items = fetch.items;
  for (uint32_t i = begin; i < end; i += 32) {
    const uint32_t item = i + Lanes::lane();
    const bool mine = item < end;
    const byte* const landed = warp.landing(mine ? fetch.ordinals[item] - first : 0);
    if (!mine) continue;
    const uint32_t at = static_cast<uint32_t>(items.offset(item) % items.block_bytes);
    const byte* const from = landed + at;
    const uint32_t to =
        fetch.index != nullptr ? (fetch.index[item >> items.ends] << items.ends) + items.within(item) : item;
    if (items.offsets != nullptr) {
      reinterpret_cast<uint64_t*>(fetch.target)[to] = word_at(landed, at, items.block_bytes);
      continue;
    }
    switch (items.bits) {
      case 1:
        fetch.target[to] =
            byte{static_cast<unsigned char>(static_cast<unsigned char>(*from) >> items.row(item) % 8 & 1)};
        break;
      case 8:
        copy_value<uint8_t>(from, fetch.target, to);
        break;
      case 16:
        copy_value<uint16_t>(from, fetch.target, to);
        break;
      case 32:
        copy_value<uint32_t>(from, fetch.target, to);
        break;
      case 64:
        copy_value<uint64_t>(from, fetch.target, to);
        break;
      default:
        copy_value<uint4>(from, fetch.target, to);
    }
  }
}

}  // namespace

/// `fetches` are `fetch_count` columns, all of one LBA and block size.
extern "C" __global__ void __launch_bounds__(256)
    scan_fetch(const QueuePoolView pool, const ScanFetch* fetches, uint32_t fetch_count, uint32_t lba_bytes,
               uint32_t lanes, uint32_t nap_ns, uint64_t deadline_ns, ScanControl* control,
               ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  with_leased_pair(pool, flags, lanes, nap_ns, deadline_ns, errors, control, [&](ScanWarp& warp) {
    if (warp.width() == 0) return;
    for (uint32_t n = 0; n < fetch_count; ++n) {
      const ScanFetch fetch = fetches[n];
      const uint32_t blocks = *fetch.blocks;
      const uint32_t lbas = fetch.items.block_bytes / lba_bytes;
      while (!warp.stopped()) {
        const uint32_t first = warp.take(fetch.next);
        if (first >= blocks) break;
        const bool wanted = warp.rank() < min(warp.width(), blocks - first);
        uint32_t nsid = 0;
        uint64_t lba = 0;
        if (wanted) {
          const uint32_t item = fetch.starts[first + warp.rank()];
          nsid = fetch.items.places[fetch.items.piece(item)].nsid;
          lba = fetch.items.block(item) * lbas;
        }
        if (!warp.read(wanted, nsid, lba, lbas, 1)) break;
        Lanes::sync();  // What each lane acquired with its command's word is to be seen by all.
        const uint32_t end = min(blocks, first + warp.width());
        scatter(fetch, warp, first, fetch.starts[first], fetch.starts[end]);
        Lanes::sync();  // All lanes have read the landing buffers that are written to next.
      }
      warp.report(fetch.tally);
    }
  });
}

}  // namespace bamquery
