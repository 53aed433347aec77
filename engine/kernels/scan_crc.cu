// Compares vectors in this GPU's memory with their checksums: one warp a vector, a piece of it each lane.
#include "engine/kernels/scan_crc.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kTables = 4;

struct Tables {
  uint32_t entry[kTables][256];  ///< Of a byte with 3, 2, 1 or no bytes behind it.
};

__device__ inline void make_tables(Tables& tables) {
  for (uint32_t byte_value = threadIdx.x; byte_value < 256; byte_value += blockDim.x) {
    uint32_t crc = crc_byte(byte_value);
    for (uint32_t table = 0; table < kTables; ++table) {
      tables.entry[kTables - 1 - table][byte_value] = crc;
      crc = crc_byte(crc);
    }
  }
  __syncthreads();
}

__device__ inline uint32_t add_word(const Tables& tables, uint32_t crc, uint32_t word) {
  const uint32_t mixed = crc ^ word;
  return tables.entry[0][mixed & 0xff] ^ tables.entry[1][mixed >> 8 & 0xff] ^
         tables.entry[2][mixed >> 16 & 0xff] ^ tables.entry[3][mixed >> 24];
}

__device__ inline uint32_t whole_piece(const Tables& tables, const byte* from, uint32_t bytes) {
  uint32_t crc = 0;
  if (bytes % 16 == 0) {
    const auto vectors = reinterpret_cast<const uint4*>(from);
    for (uint32_t i = 0; i < bytes / 16; ++i) {
      const uint4 four = vectors[i];
      crc = add_word(tables, crc, four.x);
      crc = add_word(tables, crc, four.y);
      crc = add_word(tables, crc, four.z);
      crc = add_word(tables, crc, four.w);
    }
  } else {
    const auto words = reinterpret_cast<const uint32_t*>(from);
    for (uint32_t i = 0; i < bytes / 4; ++i) crc = add_word(tables, crc, words[i]);
  }
  return crc;
}

}  // namespace

/// `vectors` vectors of `bits` a row, `vector_rows` each, whose `shifts` the host knows: vector v lies at
/// place slots[v] (null: v), if wanted[v] is not 0 (null: all are) and, with `nulls`, its state is that bits
/// tell. `bad` (zero before) gets how many vectors there are from the first on whose checksum differs. 256
/// threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_crc(const byte* memory, uint32_t bits, const uint16_t* vector_rows, uint32_t vectors,
             const CrcShifts shifts, const uint32_t* checksums, const uint32_t* slots, const uint32_t* wanted,
             const uint8_t* nulls, uint32_t* bad) {
  __shared__ Tables tables;
  make_tables(tables);
  const uint32_t size = kVectorRows * bits / 8;
  const uint32_t piece = size / kCrcPieces;  // a multiple of 4: 128 bytes are the smallest vector
  const uint32_t lane = Lanes::lane();
  const uint32_t stride = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += stride) {
    if (wanted != nullptr && wanted[vector] == 0) continue;
    if (nulls != nullptr && static_cast<Nulls>(nulls[vector]) != Nulls::kSome) continue;
    const uint64_t place = slots != nullptr ? slots[vector] : vector;
    const byte* const from = memory + place * size;
    const uint32_t bytes = (vector_rows[vector] * bits + 7) / 8;
    uint32_t crc = 0;
    if (bytes == size) {
      crc = whole_piece(tables, from + lane * piece, piece);
#pragma unroll
      for (uint32_t step = 0; step < kCrcSteps; ++step) {
        const uint32_t other = __shfl_xor_sync(~0u, crc, 1u << step);
        const bool first = (lane >> step & 1) == 0;
        crc = crc_multiply(first ? crc : other, shifts.step[step]) ^ (first ? other : crc);
      }
      crc = ~(crc ^ shifts.start);
    } else {
      // The last vector of a fragment, which comes once.
      crc = ~0u;
      for (uint32_t i = 0; i < bytes; ++i) {
        crc = tables.entry[kTables - 1][(crc ^ static_cast<uint32_t>(from[i])) & 0xff] ^ crc >> 8;
      }
      crc = ~crc;
    }
    if (lane == 0 && crc != checksums[vector]) atomicMax(bad, vectors - vector);
  }
}

/// As scan_crc, but part by part of those that each vector's byte of `masks` has: part p of vector v is to
/// have checksum kParts * numbers[v] + p.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_crc_parts(const byte* memory, uint32_t bits, const uint16_t* vector_rows, uint32_t vectors,
                   const CrcShifts shifts, const uint32_t* checksums, const uint32_t* numbers,
                   const uint8_t* masks, uint32_t* bad) {
  __shared__ Tables tables;
  make_tables(tables);
  constexpr uint32_t kLanes = 1u << kCrcPartSteps;  // a part's
  static_assert(kLanes * kParts == 32);
  const uint32_t size = kVectorRows * bits / 8;
  const uint32_t piece = size / kCrcPieces;
  const uint32_t lane = Lanes::lane();
  const uint32_t part = lane / kLanes;
  const uint32_t stride = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += stride) {
    const byte* const from = memory + static_cast<uint64_t>(vector) * size;
    const uint32_t rows = vector_rows[vector];
    const bool mine = (masks[vector] >> part & 1) != 0 && part * kPartRows < rows;
    const uint32_t bytes = mine ? min(rows - part * kPartRows, kPartRows) * bits / 8 : 0;
    const bool whole = bytes == size / kParts;
    uint32_t crc = whole ? whole_piece(tables, from + lane * piece, piece) : 0;
    __syncwarp();
#pragma unroll
    for (uint32_t step = 0; step < kCrcPartSteps; ++step) {
      const uint32_t other = __shfl_xor_sync(~0u, crc, 1u << step);
      const bool first = (lane >> step & 1) == 0;
      crc = crc_multiply(first ? crc : other, shifts.step[step]) ^ (first ? other : crc);
    }
    crc = ~(crc ^ shifts.part_start);
    if (!mine || lane % kLanes != 0) continue;
    if (!whole) {
      // The last part of a fragment, which comes once.
      const byte* const begin = from + part * (size / kParts);
      crc = ~0u;
      for (uint32_t i = 0; i < bytes; ++i) {
        crc = tables.entry[kTables - 1][(crc ^ static_cast<uint32_t>(begin[i])) & 0xff] ^ crc >> 8;
      }
      crc = ~crc;
    }
    if (crc != checksums[kParts * numbers[vector] + part]) atomicMax(bad, vectors - vector);
  }
}

}  // namespace bamquery
