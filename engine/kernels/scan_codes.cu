// A dictionary column's codes become places in the dictionaries of all of a chunk's fragments, end to end.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

__device__ inline int32_t code_at(const byte* codes, uint32_t bits, uint32_t i) {
  switch (bits) {
    case 8:
      return reinterpret_cast<const signed char*>(codes)[i];
    case 16:
      return reinterpret_cast<const short*>(codes)[i];
    default:
      return reinterpret_cast<const int32_t*>(codes)[i];
  }
}

}  // namespace

/// `codes` of `bits` a row, at `positions` (null: at those of their order). firsts[p] is where the dictionary
/// of piece p begins, firsts[pieces] where the last one ends: also the place of rows that are null by
/// `validity` (null: none are). `bad` (zero before) gets how many vectors there are from the first on with a
/// code that its dictionary does not have.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_codes(const byte* codes, uint32_t bits, const uint32_t* validity, const uint32_t* positions,
               uint32_t count, const ScanVector* vectors, uint32_t vector_count, const uint32_t* firsts,
               uint32_t pieces, int32_t* to, uint32_t* bad) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    uint32_t place = firsts[pieces];
    if (validity == nullptr || (validity[i / 32] >> i % 32 & 1) != 0) {
      const uint32_t vector = (positions == nullptr ? i : positions[i]) / kVectorRows;
      const uint32_t piece = vectors[vector].piece;
      const int32_t code = code_at(codes, bits, i);
      if (code >= 0 && static_cast<uint32_t>(code) < firsts[piece + 1] - firsts[piece]) {
        place = firsts[piece] + static_cast<uint32_t>(code);
      } else {
        atomicMax(bad, vector_count - vector);
      }
    }
    to[i] = static_cast<int32_t>(place);
  }
}

/// total += the sum of lengths[place] over places in dictionaries; those behind its `values` have none.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_code_bytes(const int32_t* places, uint32_t count, const uint32_t* lengths, uint32_t values,
                    unsigned long long* total) {
  const uint32_t step = gridDim.x * kThreads;
  unsigned long long mine = 0;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    const auto place = static_cast<uint32_t>(places[i]);
    if (place < values) mine += lengths[place];
  }
  if (mine != 0) atomicAdd(total, mine);
}

}  // namespace bamquery
