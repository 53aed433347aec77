// The strings that codes of symbols stand for: how long they are, and their bytes end to end.
#include "engine/kernels/fsst/coded_strings.hpp"
#include "engine/kernels/fsst/walk_codes.hpp"
#include "engine/kernels/strings/count_rows.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kMostStaged = 32 * kMostSymbolBytes;

// The codes of row i and its symbols; of no row none. All threads of a block call, whose rows are those from
// `first` on, one each.
struct LoadedString {
  CodedString string;
  const StringSymbols* symbols;  ///< Null where codes are bytes.
};
__device__ inline LoadedString load_string(const CodedStrings& coded, HeldSymbols& held, uint32_t first,
                                           uint32_t i) {
  const uint32_t rows = coded.strings.rows;
  const uint32_t last = min(first + kThreads, rows) - 1;
  const uint32_t piece = coded.strings.piece(min(i, last));
  const StringSymbols* const symbols =
      held.of(coded.symbols, coded.strings.piece(first), coded.strings.piece(last), piece);
  if (i >= rows) return {{coded.blocks, 0, false, true, false}, nullptr};
  const CodedString string = coded[i];
  return {string, string.is_compressed ? symbols : nullptr};
}

}  // namespace

/// Bytes of each row's string, and of each tile's together. `valid` (null: nobody asks) gets a byte a row:
/// whether it is a string. `bad_ends` and `bad_codes` (zero before) get how many vectors there are from the
/// first on with a row whose end, or one of whose codes, cannot be. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fsst_lengths(const CodedStrings coded, uint64_t* lengths, uint64_t* tiles, uint8_t* valid,
                      uint32_t* bad_ends, uint32_t* bad_codes) {
  __shared__ StringSymbols symbols;
  __shared__ WarpStrings strings[kWarps];
  __shared__ uint64_t begins[kThreads];
  __shared__ uint64_t ends[kThreads];
  HeldSymbols held(symbols);
  const uint32_t of_warp = threadIdx.x / 32 * 32;
  const uint32_t rows = coded.strings.rows;
  count_tiles(rows, lengths, tiles, [&](uint32_t i) -> uint64_t {
    const LoadedString mine = load_string(coded, held, i - threadIdx.x, i);
    begins[threadIdx.x] = ends[threadIdx.x] = 0;
    walk_codes(strings[threadIdx.x / 32], mine.string, mine.symbols, [&](const DecodedCode& code) {
      if (code.begins) begins[of_warp + code.string] = code.walked + code.before;
      if (code.ends) ends[of_warp + code.string] = code.walked + code.before + code.length;
      if (code.is_possible) return;
      const uint32_t row = i - Lanes::lane() + code.string;
      atomicMax(bad_codes, coded.strings.vector_count - coded.strings.vector(row));
    });
    __syncwarp();
    if (i >= rows) return 0;
    if (valid != nullptr) valid[i] = mine.string.is_null ? 0 : 1;
    if (!mine.string.is_possible) atomicMax(bad_ends, coded.strings.vector_count - coded.strings.vector(i));
    return ends[threadIdx.x] - begins[threadIdx.x];
  });
}

/// Where all rows of all vectors were asked for: compares how long each vector's strings are, by `sums` of
/// rows' lengths, with what it says. `bad` (zero before) gets how many vectors there are from the first on
/// that is not as long.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fsst_sizes(const CodedStrings coded, const uint64_t* sums, uint32_t* bad) {
  const uint32_t count = coded.strings.vector_count;
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < count; vector += step) {
    const uint64_t* const first = sums + static_cast<uint64_t>(vector) * kVectorRows;
    const uint64_t size = first[coded.vector_rows[vector]] - first[0];
    if (size != coded.parameters[vector].plain_bytes) atomicMax(bad, count - vector);
  }
}

/// The strings' bytes end to end; `sums` are of the rows' lengths, as scan_fsst_lengths counted them. 256
/// threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fsst_bytes(const CodedStrings coded, const uint64_t* sums, byte* to) {
  __shared__ StringSymbols symbols;
  __shared__ WarpStrings strings[kWarps];
  __shared__ byte staged[kWarps][kMostStaged];
  HeldSymbols held(symbols);
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t lane = Lanes::lane();
  const uint32_t rows = coded.strings.rows;
  for (uint64_t first = uint64_t{blockIdx.x} * kThreads; first < rows;
       first += uint64_t{gridDim.x} * kThreads) {
    const auto begin = static_cast<uint32_t>(first);
    const LoadedString mine = load_string(coded, held, begin, begin + threadIdx.x);
    byte* const target = to + sums[min(begin + 32 * warp, rows)];
    walk_codes(strings[warp], mine.string, mine.symbols, [&](const DecodedCode& code) {
      // By way of shared memory, so that what goes out lies side by side.
      for (uint32_t i = 0; i < code.length; ++i) {
        staged[warp][code.before + i] = byte{static_cast<unsigned char>(code.bytes >> 8 * i)};
      }
      __syncwarp();
      for (uint32_t i = lane; i < code.all; i += 32) target[code.walked + i] = staged[warp][i];
      __syncwarp();
    });
  }
}

}  // namespace bamquery
