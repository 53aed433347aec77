// Fetches listed blocks, by NVMe commands written here, to one after the other in this GPU's memory.
//
// As blocks.cu does, but what has landed is copied as it is: of the bytes of strings most are wanted, and
// where they go is looked up faster in this GPU's own memory.
#include "engine/kernels/fetch/fetch.hpp"
#include "engine/kernels/strings/scan_strings.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kVectorBytes = 16;
constexpr uint32_t kLoads = 8;  // in flight for each lane

// What the first `count` commands of the warp have read, to `to`. All lanes call.
__device__ inline void copy_landed(const ScanWarp& warp, uint32_t count, uint32_t block_bytes, byte* to) {
  const uint32_t of_block = block_bytes / kVectorBytes;
  const uint32_t all = count * of_block;
  for (uint32_t first = 0; first < all; first += 32 * kLoads) {
    uint4 held[kLoads];
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = first + i * 32 + Lanes::lane();
      const byte* const landed = warp.landing(at < all ? at / of_block : 0);
      if (at < all) held[i] = reinterpret_cast<const uint4*>(landed)[at % of_block];
    }
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = first + i * 32 + Lanes::lane();
      if (at < all) reinterpret_cast<uint4*>(to)[at] = held[i];
    }
  }
}

}  // namespace

/// `fetches` are `fetch_count` lists, all of one LBA and block size.
extern "C" __global__ void __launch_bounds__(256)
    scan_fetch_listed(const QueuePoolView pool, const ScanListed* fetches, uint32_t fetch_count,
                      uint32_t lba_bytes, uint32_t block_bytes, uint32_t lanes, uint32_t nap_ns,
                      uint64_t deadline_ns, ScanControl* control, ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  with_leased_pair(pool, flags, lanes, nap_ns, deadline_ns, errors, control, [&](ScanWarp& warp) {
    if (warp.width() == 0) return;
    const uint32_t lbas = block_bytes / lba_bytes;
    for (uint32_t n = 0; n < fetch_count; ++n) {
      const ScanListed fetch = fetches[n];
      while (!warp.stopped()) {
        const uint32_t first = warp.take(fetch.next);
        if (first >= fetch.blocks) break;
        const uint32_t count = min(warp.width(), fetch.blocks - first);
        const bool wanted = warp.rank() < count;
        ScanBlock block{};
        if (wanted) block = fetch.list[first + warp.rank()];
        if (!warp.read(wanted, block.nsid, block.number * lbas, lbas, 1)) break;
        Lanes::sync();  // What each lane acquired with its command's word is to be seen by all.
        copy_landed(warp, count, block_bytes, fetch.target + static_cast<uint64_t>(first) * block_bytes);
        Lanes::sync();  // All lanes have read the landing buffers that are written to next.
      }
      warp.report(fetch.tally);
    }
  });
}

}  // namespace bamquery
