// From the offsets of a selection's strings to their lengths, and to the blocks and vectors that hold them.
//
// Sums have 64 bits: the strings of few rows can be many bytes. They are made in three steps: tiles of 1,024
// rows are added up, then what comes before each tile, then what comes before each row.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_prefix.hpp"
#include "engine/kernels/strings/count_rows.hpp"
#include "engine/kernels/strings/scan_strings.hpp"

namespace bamquery {

/// Bytes of the offsets' vectors' strings: ranges[v] for each vector v with used[v] (null: all), of
/// `vector_rows` rows; nothing for others. `bad` (zero before) gets how many vectors there are from the first
/// on whose strings do not lie within their column.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_ranges(const ScanStrings strings, const uint32_t* used, const uint16_t* vector_rows,
                       ScanRange* ranges, uint32_t* bad) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < strings.vector_count; vector += step) {
    ScanRange range{0, 0};
    if (used == nullptr || used[vector] != 0) {
      const uint64_t* const offsets = strings.vector_offsets(vector);
      range = {offsets[0], offsets[vector_rows[vector]]};
      if (range.begin > range.end || range.end > strings.sizes[strings.vectors[vector].piece]) {
        atomicMax(bad, strings.vector_count - vector);
        range = {0, 0};
      }
    }
    ranges[vector] = range;
  }
}

/// Length of each row's string, and of each tile's together. `ranges` (null: unknown) are of vectors. `bad`
/// (zero before) gets how many vectors there are from the first on with a row that does not lie within them
/// and behind the row before.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_lengths(const ScanStrings strings, const ScanRange* ranges, uint64_t* lengths,
                        uint64_t* tiles, uint32_t* bad) {
  count_rows(strings.rows, lengths, tiles, [&](uint32_t row) -> uint64_t {
    const ScanRange range = strings.range(row);
    const uint32_t vector = strings.vector(row);
    const uint32_t piece = strings.vectors[vector].piece;
    bool good = range.begin <= range.end && range.end <= strings.sizes[piece];
    if (ranges != nullptr) good &= range.begin >= ranges[vector].begin && range.end <= ranges[vector].end;
    if (row != 0 && strings.piece(row - 1) == piece) good &= strings.range(row - 1).end <= range.begin;
    if (!good) atomicMax(bad, strings.vector_count - vector);
    return good ? range.end - range.begin : 0;
  });
}

/// How many blocks begin with each row's string: those that hold a byte of it and of none before. `sums` are
/// of lengths.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_blocks(const ScanStrings strings, const uint64_t* sums, uint64_t* counts, uint64_t* tiles) {
  count_rows(strings.rows, counts, tiles, [&](uint32_t row) -> uint64_t {
    if (sums[row + 1] == sums[row]) return 0;
    const ScanRange range = strings.range(row);
    const uint32_t piece = strings.piece(row);
    const uint64_t first = strings.block(piece, range.begin);
    const uint64_t all = strings.block(piece, range.end - 1) - first + 1;
    if (sums[row] == 0) return all;
    // The row before that is not empty: most often the last one, else the last with a smaller sum.
    const uint32_t before = sums[row - 1] < sums[row] ? row - 1 : last_at_most(sums, row, sums[row] - 1);
    const bool shared =
        strings.piece(before) == piece && strings.block(piece, strings.range(before).end - 1) == first;
    return all - (shared ? 1 : 0);
  });
}

/// tiles[t] becomes the sum of those before; `total` gets that of all. One block of 1,024.
extern "C" __global__ void __launch_bounds__(kScanThreads)
    scan_string_tiles(uint64_t* tiles, uint32_t count, uint64_t* total) {
  __shared__ uint64_t sums[32];
  const uint32_t warp = threadIdx.x / 32;
  uint64_t before = 0;
  for (uint32_t first = 0; first < count; first += kScanThreads) {
    const uint32_t mine = first + threadIdx.x;
    const uint64_t value = mine < count ? tiles[mine] : 0;
    const uint64_t within = warp_prefix(value);
    if (Lanes::lane() == 31) sums[warp] = within;
    __syncthreads();
    if (warp == 0) {
      const uint64_t of_warp = sums[Lanes::lane()];
      sums[Lanes::lane()] = warp_prefix(of_warp);
    }
    __syncthreads();
    if (mine < count) tiles[mine] = before + within - value + (warp == 0 ? 0 : sums[warp - 1]);
    before += sums[31];
    __syncthreads();  // All have read the sums that are written next.
  }
  if (threadIdx.x == 0) *total = before;
}

/// counts[i] becomes the sum of those before, and counts[rows] that of all.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_sums(uint64_t* counts, uint32_t rows, const uint64_t* tiles, const uint64_t* total) {
  __shared__ uint64_t sums[kWarps];
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t tile_count = (rows + kTile - 1) / kTile;
  for (uint32_t tile = blockIdx.x; tile < tile_count; tile += gridDim.x) {
    const uint32_t first = tile * kTile + threadIdx.x * kRounds;
    uint64_t values[kRounds];
    uint64_t sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < kRounds; ++i) {
      values[i] = first + i < rows ? counts[first + i] : 0;
      sum += values[i];
    }
    const uint64_t within = warp_prefix(sum);
    if (Lanes::lane() == 31) sums[warp] = within;
    __syncthreads();
    uint64_t at = tiles[tile] + within - sum;
    for (uint32_t other = 0; other < warp; ++other) at += sums[other];
#pragma unroll
    for (uint32_t i = 0; i < kRounds; ++i) {
      if (first + i < rows) counts[first + i] = at;
      at += values[i];
    }
    __syncthreads();  // All have read the sums that are written next.
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) counts[rows] = *total;
}

/// The blocks that hold the strings, ascending: `bases` are sums of what scan_string_blocks counted.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_listing(const ScanStrings strings, const uint64_t* bases, uint32_t blocks, ScanBlock* list) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < blocks; i += step) {
    const uint32_t row = last_at_most(bases, strings.rows, i);
    const uint32_t piece = strings.piece(row);
    const uint64_t last = strings.block(piece, strings.range(row).end - 1);
    list[i] = {last - (bases[row + 1] - 1 - i), strings.places[piece].nsid, 0};
  }
}

/// `count` sums, none above 2^31 - 1, as offsets of 32 bits.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_offsets(const uint64_t* sums, uint32_t count, int32_t* to) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    to[i] = static_cast<int32_t>(sums[i]);
  }
}

}  // namespace bamquery
