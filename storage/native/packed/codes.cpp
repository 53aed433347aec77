#include "storage/native/packed/codes.hpp"

#include <bit>
#include <cstring>

#include "storage/native/packed/codes_x86.hpp"

namespace bamquery {
namespace {

static_assert(std::endian::native == std::endian::little, "codes are loaded as they are stored");

// Eight codes at a time start at a byte: all shifts are then the same from group to group.
template <typename Code>
void unpack_baseline(const std::byte* packed, std::uint32_t bits, std::uint32_t groups, Code* out) {
  const std::uint64_t mask = packed_mask(bits);
  for (std::uint32_t group = 0; group < groups; ++group, packed += bits, out += 8) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      std::uint64_t word;
      std::memcpy(&word, packed + (i * bits >> 3), sizeof word);
      out[i] = static_cast<Code>((word >> (i * bits & 7)) & mask);
    }
  }
}

template <typename Code>
void unpack(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
            CodeBuffer<Code>& out) {
  const std::uint32_t parts = (rows + kPackedPartRows - 1) / kPackedPartRows;
  if (bits == 0) {
    std::memset(out.codes, 0, parts * kPackedPartRows * sizeof(Code));
    return;
  }
  const std::uint32_t groups = parts * kPackedPartRows / 8;
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return unpack_avx512(packed, bits, groups, out.codes);
  if (level == SimdLevel::kAvx2) return unpack_avx2(packed, bits, groups, out.codes);
#else
  static_cast<void>(level);
#endif
  unpack_baseline(packed, bits, groups, out.codes);
}

template <typename Code>
void within(SimdLevel level, const CodeBuffer<Code>& codes, std::uint32_t rows, std::uint64_t low,
            std::uint64_t high, std::uint64_t* mask) {
  const auto first = static_cast<Code>(low);
  const auto span = static_cast<Code>(high - low);
  const std::uint32_t words = (rows + 63) / 64;
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return within_avx512(codes.codes, words, first, span, mask);
  if (level == SimdLevel::kAvx2) return within_avx2(codes.codes, words, first, span, mask);
#else
  static_cast<void>(level);
#endif
  for (std::uint32_t word = 0; word < words; ++word) {
    std::uint8_t flags[64];
    for (std::uint32_t i = 0; i < 64; ++i) {
      flags[i] = static_cast<Code>(codes.codes[64 * word + i] - first) <= span ? 1 : 0;
    }
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      std::uint64_t eight;
      std::memcpy(&eight, flags + 8 * i, sizeof eight);
      found |= (eight * 0x0102040810204080 >> 56) << (8 * i);  // byte j's lowest bit becomes bit j
    }
    mask[word] = found;
  }
}

// Four codes' bits together, or two's, are appended at once: appending is what takes time.
template <std::uint32_t kTogether>
[[gnu::always_inline]] inline std::byte* append(const std::uint64_t* codes, std::uint32_t bits,
                                                std::uint32_t count, std::byte* out, std::uint32_t& shift,
                                                std::uint64_t& carry) {
  for (std::uint32_t i = 0; i < count; i += kTogether) {
    std::uint64_t joined = codes[i];
    for (std::uint32_t j = 1; j < kTogether; ++j) joined |= codes[i + j] << (j * bits);
    const std::uint64_t word = carry | joined << shift;
    std::memcpy(out, &word, sizeof word);
    const std::uint32_t end = shift + kTogether * bits;  // at most 63
    out += end >> 3;
    carry = word >> (end & ~7u);
    shift = end & 7;
  }
  return out;
}

[[gnu::always_inline]] inline void pack(const std::uint64_t* codes, std::uint32_t bits, std::uint32_t rows,
                                        std::byte* out) {
  std::byte* const end = out + packed_code_bytes(bits, rows);
  std::uint32_t shift = 0;
  std::uint64_t carry = 0;
  const std::uint32_t whole = rows & ~3u;
  if (bits <= 14) {
    out = append<4>(codes, bits, whole, out, shift, carry);
  } else if (bits <= 28) {
    out = append<2>(codes, bits, whole, out, shift, carry);
  } else {
    out = append<1>(codes, bits, whole, out, shift, carry);
  }
  out = append<1>(codes + whole, bits, rows - whole, out, shift, carry);
  std::memcpy(out, &carry, sizeof carry);  // nothing but zeros behind the last code
  if (out + sizeof carry < end) std::memset(out + sizeof carry, 0, static_cast<std::size_t>(end - out) - 8);
}

#if defined(__x86_64__)
BAMQUERY_AVX2 void pack_avx2(const std::uint64_t* codes, std::uint32_t bits, std::uint32_t rows,
                             std::byte* out) {
  pack(codes, bits, rows, out);  // for its shifts by variables
}
#endif

}  // namespace

void unpack_codes(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                  CodeBuffer<std::uint32_t>& out) {
  unpack(level, packed, bits, rows, out);
}

void unpack_codes(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                  CodeBuffer<std::uint64_t>& out) {
  unpack(level, packed, bits, rows, out);
}

void packed_within(SimdLevel level, const std::byte* packed, std::uint32_t bits, std::uint32_t rows,
                   std::uint64_t low, std::uint64_t high, std::uint64_t* mask) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) {
    const auto first = static_cast<std::uint32_t>(low);
    const auto span = static_cast<std::uint32_t>(high - low);
    return packed_within_avx2(packed, bits, (rows + 63) / 64, first, span, mask);
  }
#endif
  CodeBuffer<std::uint32_t> codes;
  unpack(level, packed, bits, rows, codes);
  within(level, codes, rows, low, high, mask);
}

void codes_within(SimdLevel level, const CodeBuffer<std::uint32_t>& codes, std::uint32_t rows,
                  std::uint64_t low, std::uint64_t high, std::uint64_t* mask) {
  within(level, codes, rows, low, high, mask);
}

void codes_within(SimdLevel level, const CodeBuffer<std::uint64_t>& codes, std::uint32_t rows,
                  std::uint64_t low, std::uint64_t high, std::uint64_t* mask) {
  within(level, codes, rows, low, high, mask);
}

void pack_codes(SimdLevel level, const std::uint64_t* codes, std::uint32_t bits, std::uint32_t rows,
                std::byte* out) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) return pack_avx2(codes, bits, rows, out);
#else
  static_cast<void>(level);
#endif
  pack(codes, bits, rows, out);
}

}  // namespace bamquery
