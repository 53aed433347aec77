// Values at positions, out of vectors that lie in this GPU's memory.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

// Where a position is among the vectors that are there: `slots` (null: all are) says where each went.
__device__ inline uint64_t place_of(uint32_t position, const uint32_t* slots) {
  if (slots == nullptr) return position;
  return static_cast<uint64_t>(slots[position / kVectorRows]) * kVectorRows + position % kVectorRows;
}

template <typename T>
__device__ inline void gather(const T* values, const uint32_t* positions, const uint32_t* slots,
                              uint32_t count, T* to) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    to[i] = values[place_of(positions[i], slots)];
  }
}

}  // namespace

namespace {

struct Wide {
  uint4 parts[3];
};

}  // namespace

#define BAMQUERY_SCAN_GATHER(bits, type)                                                                \
  extern "C" __global__ void __launch_bounds__(kThreads) scan_gather_##bits(                            \
      const type* values, const uint32_t* positions, const uint32_t* slots, uint32_t count, type* to) { \
    gather(values, positions, slots, count, to);                                                        \
  }

BAMQUERY_SCAN_GATHER(8, uint8_t)
BAMQUERY_SCAN_GATHER(16, uint16_t)
BAMQUERY_SCAN_GATHER(32, uint32_t)
BAMQUERY_SCAN_GATHER(64, uint64_t)
BAMQUERY_SCAN_GATHER(128, uint4)
BAMQUERY_SCAN_GATHER(384, Wide)

/// Bits become bytes, as libcudf has booleans.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_gather_1(const uint8_t* values, const uint32_t* positions, const uint32_t* slots, uint32_t count,
                  uint8_t* to) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    const uint64_t at = place_of(positions[i], slots);
    to[i] = values[at / 8] >> at % 8 & 1;
  }
}

/// One byte a position: whether the row is valid, as far as its vector's state tells; 1 where bits tell.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_valid_by_vector(const uint8_t* nulls, const uint32_t* positions, uint32_t count, uint8_t* to) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    to[i] = static_cast<Nulls>(nulls[positions[i] / kVectorRows]) != Nulls::kAll ? 1 : 0;
  }
}

/// As scan_gather_1, but leaves alone the rows of vectors whose state tells.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_gather_valid(const uint8_t* validity, const uint8_t* nulls, const uint32_t* positions,
                      const uint32_t* slots, uint32_t count, uint8_t* to) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    if (static_cast<Nulls>(nulls[positions[i] / kVectorRows]) != Nulls::kSome) continue;
    const uint64_t at = place_of(positions[i], slots);
    to[i] = validity[at / 8] >> at % 8 & 1;
  }
}

/// Bytes become bits, from bit 0 on, in words; `null_count` (zero before) gets the bytes that are 0.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_pack_bits(const uint8_t* bytes, uint32_t count, uint32_t* words, uint32_t* null_count) {
  const uint32_t step = gridDim.x * kThreads;
  const uint32_t end = (count + 31) / 32 * 32;  // all lanes of a warp take part
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < end; i += step) {
    const uint32_t word = __ballot_sync(~0u, i < count && bytes[i] != 0);
    if (Lanes::lane() != 0) continue;
    words[i / 32] = word;
    const uint32_t here = min(count - i, 32u);
    if (bit_count(word) != here) atomicAdd(null_count, here - bit_count(word));
  }
}

/// A bit for each position of a vector whose validity bits tell: to be picked by scan_positions.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_with_nulls(const uint8_t* nulls, const uint32_t* positions, uint32_t count, uint32_t vectors,
                    uint32_t* mask, uint32_t* counts) {
  const uint32_t step = gridDim.x * (kThreads / 32);
  for (uint32_t vector = blockIdx.x * (kThreads / 32) + threadIdx.x / 32; vector < vectors; vector += step) {
    uint32_t total = 0;
    for (uint32_t word = 0; word < kVectorWords; ++word) {
      const uint32_t i = vector * kVectorRows + word * 32 + Lanes::lane();
      const bool mixed = i < count && static_cast<Nulls>(nulls[positions[i] / kVectorRows]) == Nulls::kSome;
      const uint32_t bits = __ballot_sync(~0u, mixed);
      if (Lanes::lane() == 0) mask[static_cast<uint64_t>(vector) * kVectorWords + word] = bits;
      total += bit_count(bits);
    }
    if (Lanes::lane() == 0) counts[vector] = total;
  }
}

}  // namespace bamquery
