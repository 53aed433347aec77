// Rows of a selection that a kernel marks, so that only of these something is fetched.
#pragma once

#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

/// For each row i `mark(i)`, which says whether it is marked: bits of `mask`, and how many there are in
/// `counts` of each 1,024 rows. A warp takes these; all lanes call.
template <typename Mark>
__device__ inline void mark_rows(uint32_t count, uint32_t* mask, uint32_t* counts, const Mark& mark) {
  const uint32_t lane = Lanes::lane();
  const uint32_t tiles = (count + kVectorRows - 1) / kVectorRows;
  for (uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32; tile < tiles; tile += gridDim.x * kWarps) {
    uint32_t total = 0;
    for (uint32_t word = 0; word < kVectorWords; ++word) {
      const uint32_t row = tile * kVectorRows + word * 32 + lane;
      const bool marked = row < count && mark(row);
      const uint32_t bits = __ballot_sync(~0u, marked);
      if (lane == 0) mask[static_cast<uint64_t>(tile) * kVectorWords + word] = bits;
      total += bit_count(bits);
    }
    if (lane == 0) counts[tile] = total;
  }
}

/// Where what is in at most 8 bytes, from `begin` to `last`, goes on in another block; `begin` where it does
/// not.
BAMQUERY_CORE uint64_t next_block(uint64_t begin, uint64_t last, uint32_t block_bytes) {
  return begin / block_bytes == last / block_bytes ? begin : last / block_bytes * block_bytes;
}

/// The 8 bytes from `begin` on: `word` has those of its block, `next` those from `crossing` (`next_block`)
/// on.
BAMQUERY_CORE uint64_t join_words(uint64_t word, uint64_t next, uint64_t begin, uint64_t crossing,
                                  uint32_t block_bytes) {
  if (begin == crossing) return word;
  return word | next << 8 * (block_bytes - static_cast<uint32_t>(begin % block_bytes));
}

}  // namespace bamquery
