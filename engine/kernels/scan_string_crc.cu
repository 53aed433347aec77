// Compares the offsets, or the bytes, of vectors of strings with their checksums: one warp a vector.
//
// Zeros in front change no CRC that begins with zero. So a vector of any length is 32 pieces of a length that
// is a power of two, of which the first ones may be missing, and remainders are moved on by such lengths
// only.
#include "engine/kernels/scan_crc.hpp"
#include "engine/kernels/scan_strings.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / 32;
constexpr uint32_t kTables = 4;
constexpr uint32_t kPowers = 48;
constexpr uint32_t kSmallest = 2;  // a piece of 4 bytes
constexpr uint32_t kInverted = 4;  // bytes in which the inversion before the first byte ends up
constexpr uint32_t kBehind = 64;   // bytes at most that each lane adds alike

struct Powers {
  uint32_t of[kPowers];  ///< x^(8 n) for n = 1, 2, 4, ...: moves on by n bytes.

  BAMQUERY_CORE constexpr Powers() : of{} {
    uint32_t power = 1u << 23;  // x^8; bit 31 is the coefficient of x^0
    for (uint32_t i = 0; i < kPowers; ++i) {
      of[i] = power;
      power = crc_multiply(power, power);
    }
  }
};

struct Tables {
  uint32_t entry[kTables][256];  ///< Of a byte with 3, 2, 1 or no bytes behind it.
  uint32_t powers[kPowers];
};

__device__ inline void make_tables(Tables& tables) {
  for (uint32_t value = threadIdx.x; value < 256; value += blockDim.x) {
    uint32_t crc = crc_byte(value);
    for (uint32_t table = 0; table < kTables; ++table) {
      tables.entry[kTables - 1 - table][value] = crc;
      crc = crc_byte(crc);
    }
  }
  constexpr Powers kPowersOfX;
  if (threadIdx.x < kPowers) tables.powers[threadIdx.x] = kPowersOfX.of[threadIdx.x];
  __syncthreads();
}

__device__ inline uint32_t add_byte(const Tables& tables, uint32_t crc, uint32_t value) {
  return tables.entry[kTables - 1][(crc ^ value) & 0xff] ^ crc >> 8;
}

// The CRC, from `crc` on, of bytes [at, end) of a vector that begins at `from`; its first four are inverted.
__device__ inline uint32_t piece_crc(const Tables& tables, uint32_t crc, const byte* from, uint64_t at,
                                     uint64_t end) {
  for (; at < end && (at < kInverted || reinterpret_cast<uint64_t>(from + at) % 4 != 0); ++at) {
    crc = add_byte(tables, crc, static_cast<uint32_t>(from[at]) ^ (at < kInverted ? 0xffu : 0));
  }
  for (; at + 4 <= end; at += 4) {
    const uint32_t mixed = crc ^ *reinterpret_cast<const uint32_t*>(from + at);
    crc = tables.entry[0][mixed & 0xff] ^ tables.entry[1][mixed >> 8 & 0xff] ^
          tables.entry[2][mixed >> 16 & 0xff] ^ tables.entry[3][mixed >> 24];
  }
  for (; at < end; ++at) crc = add_byte(tables, crc, static_cast<uint32_t>(from[at]));
  return crc;
}

// The CRC-32C of `bytes` bytes. All lanes call.
__device__ inline uint32_t vector_crc(const Tables& tables, const byte* from, uint64_t bytes) {
  if (bytes < kInverted) {
    uint32_t crc = ~0u;
    for (uint64_t i = 0; i < bytes; ++i) crc = add_byte(tables, crc, static_cast<uint32_t>(from[i]));
    return ~crc;
  }
  uint32_t power = kSmallest;
  while (uint64_t{kCrcPieces} << power < bytes) ++power;
  // A little more than pieces of half that length, as the offsets of a vector are: it comes behind them.
  uint64_t behind = 0;
  if (power > kSmallest && bytes - (uint64_t{kCrcPieces} << (power - 1)) <= kBehind) {
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

}  // namespace

/// Vectors v with used[v] (null: all), of `vector_rows` rows. With `ranges` and `shifts` the bytes of their
/// strings: byte b of vector v's is at address shifts[v] + b; without, their offsets. `bad` (zero before)
/// gets how many vectors there are from the first on whose checksum differs. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_crc(const ScanStrings strings, const ScanRange* ranges, const uint64_t* shifts,
                    const uint16_t* vector_rows, const uint32_t* used, const uint32_t* checksums,
                    uint32_t* bad) {
  __shared__ Tables tables;
  make_tables(tables);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < strings.vector_count;
       vector += step) {
    if (used != nullptr && used[vector] == 0) continue;
    const byte* from = reinterpret_cast<const byte*>(strings.vector_offsets(vector));
    uint64_t bytes = (vector_rows[vector] + uint64_t{1}) * sizeof(uint64_t);
    if (ranges != nullptr) {
      from = reinterpret_cast<const byte*>(shifts[vector] + ranges[vector].begin);
      bytes = ranges[vector].end - ranges[vector].begin;
    }
    const uint32_t crc = vector_crc(tables, from, bytes);
    if (Lanes::leads() && crc != checksums[vector]) atomicMax(bad, strings.vector_count - vector);
  }
}

}  // namespace bamquery
