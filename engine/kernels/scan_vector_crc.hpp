// The CRC-32C of a vector of any length in this GPU's memory, by a warp.
//
// Zeros in front change no CRC that begins with zero. So a vector of any length is 32 pieces of a length that
// is a power of two, of which the first ones may be missing, and remainders are moved on by such lengths
// only.
#pragma once

#include "engine/kernels/scan_crc.hpp"
#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

inline constexpr uint32_t kCrcTables = 4;
inline constexpr uint32_t kCrcPowers = 48;
inline constexpr uint32_t kCrcSmallest = 2;  // a piece of 4 bytes
inline constexpr uint32_t kCrcInverted = 4;  // bytes in which the inversion before the first byte ends up
inline constexpr uint32_t kCrcBehind = 64;   // bytes at most that each lane adds alike

struct CrcPowers {
  uint32_t of[kCrcPowers];  ///< x^(8 n) for n = 1, 2, 4, ...: moves on by n bytes.

  BAMQUERY_CORE constexpr CrcPowers() : of{} {
    uint32_t power = 1u << 23;  // x^8; bit 31 is the coefficient of x^0
    for (uint32_t i = 0; i < kCrcPowers; ++i) {
      of[i] = power;
      power = crc_multiply(power, power);
    }
  }
};

struct CrcTables {
  uint32_t entry[kCrcTables][256];  ///< Of a byte with 3, 2, 1 or no bytes behind it.
  uint32_t powers[kCrcPowers];
};

__device__ inline void make_crc_tables(CrcTables& tables) {
  for (uint32_t value = threadIdx.x; value < 256; value += blockDim.x) {
    uint32_t crc = crc_byte(value);
    for (uint32_t table = 0; table < kCrcTables; ++table) {
      tables.entry[kCrcTables - 1 - table][value] = crc;
      crc = crc_byte(crc);
    }
  }
  constexpr CrcPowers kPowersOfX;
  if (threadIdx.x < kCrcPowers) tables.powers[threadIdx.x] = kPowersOfX.of[threadIdx.x];
  __syncthreads();
}

__device__ inline uint32_t add_crc_byte(const CrcTables& tables, uint32_t crc, uint32_t value) {
  return tables.entry[kCrcTables - 1][(crc ^ value) & 0xff] ^ crc >> 8;
}

// The CRC, from `crc` on, of bytes [at, end) of a vector that begins at `from`; its first four are inverted.
__device__ inline uint32_t piece_crc(const CrcTables& tables, uint32_t crc, const byte* from, uint64_t at,
                                     uint64_t end) {
  for (; at < end && (at < kCrcInverted || reinterpret_cast<uint64_t>(from + at) % 4 != 0); ++at) {
    crc = add_crc_byte(tables, crc, static_cast<uint32_t>(from[at]) ^ (at < kCrcInverted ? 0xffu : 0));
  }
  for (; at + 4 <= end; at += 4) {
    const uint32_t mixed = crc ^ *reinterpret_cast<const uint32_t*>(from + at);
    crc = tables.entry[0][mixed & 0xff] ^ tables.entry[1][mixed >> 8 & 0xff] ^
          tables.entry[2][mixed >> 16 & 0xff] ^ tables.entry[3][mixed >> 24];
  }
  for (; at < end; ++at) crc = add_crc_byte(tables, crc, static_cast<uint32_t>(from[at]));
  return crc;
}

// The CRC-32C of `bytes` bytes. All lanes call.
__device__ inline uint32_t vector_crc(const CrcTables& tables, const byte* from, uint64_t bytes) {
  if (bytes < kCrcInverted) {
    uint32_t crc = ~0u;
    for (uint64_t i = 0; i < bytes; ++i) crc = add_crc_byte(tables, crc, static_cast<uint32_t>(from[i]));
    return ~crc;
  }
  uint32_t power = kCrcSmallest;
  while (uint64_t{kCrcPieces} << power < bytes) ++power;
  // A little more than pieces of half that length, as the offsets of a vector are: it comes behind them.
  uint64_t behind = 0;
  if (power > kCrcSmallest && bytes - (uint64_t{kCrcPieces} << (power - 1)) <= kCrcBehind) {
    --power;
    behind = bytes - (uint64_t{kCrcPieces} << power);
  }
  const uint64_t whole = bytes - behind;
  const uint64_t missing = (uint64_t{kCrcPieces} << power) - whole;
  const uint32_t lane = Lanes::lane();
  const uint64_t begin = uint64_t{lane} << power;
  const uint64_t end = begin + (uint64_t{1} << power);
  uint32_t crc = 0;
  if (end > missing) crc = piece_crc(tables, 0, from, begin > missing ? begin - missing : 0, end - missing);
#pragma unroll
  for (uint32_t step = 0; step < kCrcSteps; ++step) {
    const uint32_t other = __shfl_xor_sync(~0u, crc, 1u << step);
    const bool first = (lane >> step & 1) == 0;
    crc = crc_multiply(first ? crc : other, tables.powers[power + step]) ^ (first ? other : crc);
  }
  return ~piece_crc(tables, crc, from, whole, bytes);
}

}  // namespace bamquery
