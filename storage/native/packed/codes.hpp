// Codes of b bits, end to end, least significant bit first: packed and unpacked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/core/packed_vector.hpp"
#include "storage/native/packed/simd_level.hpp"

namespace bamquery {

/// Codes of up to so many bits are unpacked to 32 bits each, wider ones to 64.
inline constexpr std::uint32_t kNarrowBits = 25;

/// So many bytes behind the codes may be read.
inline constexpr std::size_t kCodeSlack = 64;

/// Where a vector's codes are unpacked to; the last part is unpacked whole.
template <typename Code>
struct alignas(64) CodeBuffer {
  Code codes[kPackedVectorRows];
};

/// The codes of so many rows; `bits` is at most kNarrowBits.
void unpack_codes(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                  CodeBuffer<std::uint32_t>& out);
/// The same for any `bits` up to kPackedMaxBits.
void unpack_codes(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                  CodeBuffer<std::uint64_t>& out);

/// Packs `rows` codes below 2^bits to whole parts, the last filled with zeros; `bits` is 1 to kPackedMaxBits.
/// Up to 8 bytes behind them are overwritten.
void pack_codes(SimdLevel level, const std::uint64_t* codes, std::uint32_t bits, std::uint32_t rows,
                std::byte* out);

/// Bit r of `mask`: code r of so many packed ones is one of low to high, both included, which have no more
/// than `bits` bits; that is 1 to kNarrowBits. Whole words are written; of codes in padding they say
/// anything.
void packed_within(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                   std::uint64_t low, std::uint64_t high, std::uint64_t* mask);

/// The same of codes that are unpacked.
void codes_within(SimdLevel level, const CodeBuffer<std::uint32_t>& codes, std::uint32_t rows,
                  std::uint64_t low, std::uint64_t high, std::uint64_t* mask);
void codes_within(SimdLevel level, const CodeBuffer<std::uint64_t>& codes, std::uint32_t rows,
                  std::uint64_t low, std::uint64_t high, std::uint64_t* mask);

}  // namespace bamquery
