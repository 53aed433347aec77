// A dictionary column's codes become places in the dictionaries of all of a chunk's fragments, end to end.
#include "scan_layout.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kThreads = 256;

template <typename T>
__device__ inline void places_of(const T* codes, const uint32_t* validity, const uint32_t* positions,
                                 uint32_t count, const ScanVector* vectors, uint32_t vector_count,
                                 const uint32_t* firsts, uint32_t pieces, int32_t* to, uint32_t* bad) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    uint32_t place = firsts[pieces];  // behind all: null
    if (validity == nullptr || (validity[i / 32] >> i % 32 & 1) != 0) {
      const uint32_t vector = positions[i] / kVectorRows;
      const uint32_t piece = vectors[vector].piece;
      const int32_t code = codes[i];
      if (code >= 0 && static_cast<uint32_t>(code) < firsts[piece + 1] - firsts[piece]) {
        place = firsts[piece] + static_cast<uint32_t>(code);
      } else {
        atomicMax(bad, vector_count - vector);
      }
    }
    to[i] = static_cast<int32_t>(place);
  }
}

}  // namespace

/// firsts[p] is where the dictionary of piece p begins, firsts[pieces] where the last one ends: also the
/// place of rows that are null by `validity` (null: none are). `bad` (zero before) gets how many vectors
/// there are from the first on with a code that its dictionary does not have.
#define BAMQUERY_SCAN_CODES(bits, type)                                                           \
  extern "C" __global__ void __launch_bounds__(kThreads)                                          \
      scan_codes_##bits(const type* codes, const uint32_t* validity, const uint32_t* positions,   \
                        uint32_t count, const ScanVector* vectors, uint32_t vector_count,         \
                        const uint32_t* firsts, uint32_t pieces, int32_t* to, uint32_t* bad) {    \
    places_of(codes, validity, positions, count, vectors, vector_count, firsts, pieces, to, bad); \
  }

BAMQUERY_SCAN_CODES(8, int8_t)
BAMQUERY_SCAN_CODES(16, int16_t)
BAMQUERY_SCAN_CODES(32, int32_t)

}  // namespace bamquery
