#include "storage/native/packed/codes_x86.hpp"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC's own _mm512_undefined_epi32
#endif
#include <immintrin.h>

#include <array>

#include "storage/native/packed/codes.hpp"

namespace bamquery {
namespace {

// How eight codes come out of b bytes. A lane of 128 bits is loaded from the byte in which its first code
// starts; a shuffle gives each code the bytes that hold it, a shift brings it down.
template <typename Code, std::size_t kLanes>
struct alignas(32) Extraction {
  std::array<std::uint8_t, 16 * kLanes> bytes;
  std::array<Code, 16 * kLanes / sizeof(Code)> shifts;
  std::array<std::uint32_t, kLanes> starts;  // of each lane's load
};

template <typename Code, std::size_t kLanes>
constexpr Extraction<Code, kLanes> extraction(std::uint32_t bits) {
  constexpr std::uint32_t kCodes = 16 / sizeof(Code);  // of a lane
  Extraction<Code, kLanes> made{};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    made.starts[lane] = lane * kCodes * bits / 8;
    for (std::uint32_t i = 0; i < kCodes; ++i) {
      const std::uint32_t bit = (lane * kCodes + i) * bits - 8 * made.starts[lane];
      made.shifts[lane * kCodes + i] = static_cast<Code>(bit & 7);
      for (std::uint32_t byte = 0; byte < sizeof(Code); ++byte) {
        made.bytes[16 * lane + sizeof(Code) * i + byte] = static_cast<std::uint8_t>(bit / 8 + byte);
      }
    }
  }
  return made;
}

template <typename Code, std::size_t kLanes, std::uint32_t kMaxBits>
constexpr auto extractions() {
  std::array<Extraction<Code, kLanes>, kMaxBits + 1> made{};
  for (std::uint32_t bits = 0; bits <= kMaxBits; ++bits) made[bits] = extraction<Code, kLanes>(bits);
  return made;
}

// Codes of up to so many bits lie within 16 bits, whatever bit of a byte they start at.
constexpr std::uint32_t kHalfBits = 9;

constexpr auto kHalf = extractions<std::uint16_t, 1, kHalfBits>();
constexpr auto kNarrow = extractions<std::uint32_t, 2, kNarrowBits>();
constexpr auto kWide = extractions<std::uint64_t, 4, kPackedMaxBits>();

// The same for one shuffle across 64 bytes: 16 narrow codes, or 8 wide ones.
template <typename Code>
struct alignas(64) WideExtraction {
  std::array<std::uint8_t, 64> bytes;
  std::array<Code, 64 / sizeof(Code)> shifts;
};

template <typename Code, std::uint32_t kMaxBits>
constexpr auto wide_extractions() {
  std::array<WideExtraction<Code>, kMaxBits + 1> made{};
  for (std::uint32_t bits = 0; bits <= kMaxBits; ++bits) {
    for (std::uint32_t i = 0; i < 64 / sizeof(Code); ++i) {
      made[bits].shifts[i] = i * bits & 7;
      for (std::uint32_t byte = 0; byte < sizeof(Code); ++byte) {
        made[bits].bytes[sizeof(Code) * i + byte] = static_cast<std::uint8_t>((i * bits / 8 + byte) & 63);
      }
    }
  }
  return made;
}

constexpr auto kNarrow512 = wide_extractions<std::uint32_t, kNarrowBits>();
constexpr auto kWide512 = wide_extractions<std::uint64_t, kPackedMaxBits>();

BAMQUERY_AVX2 inline __m256i load_lanes(const std::byte* low, const std::byte* high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

template <typename T>
BAMQUERY_AVX2 inline __m256i load_256(const T* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

BAMQUERY_AVX2 inline __m256i load_twice(const void* lane) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(static_cast<const __m128i*>(lane)));
}

BAMQUERY_AVX2 inline __m256i moved_up(std::uint32_t value, __m256i shifts) {
  return _mm256_sllv_epi32(_mm256_set1_epi32(static_cast<int>(value)), shifts);
}

// So far ahead of what is looked at memory is asked for: about what comes while one load takes its time.
constexpr std::size_t kAhead = 1024;

// Codes are compared where a shuffle leaves them, some bits above the lowest of a lane: bounds are moved up
// instead, once. 32 lanes of 16 bits are two groups of eight codes and the two behind these.
BAMQUERY_AVX2 void half_within(const std::byte* packed, std::uint32_t bits, std::uint32_t words,
                               std::uint32_t low, std::uint32_t span, std::uint64_t* mask) {
  const auto& how = kHalf[bits];
  alignas(16) std::uint16_t kept[8], lows[8], spans[8];
  for (std::uint32_t i = 0; i < 8; ++i) {
    kept[i] = static_cast<std::uint16_t>(packed_mask(bits) << how.shifts[i]);
    lows[i] = static_cast<std::uint16_t>(low << how.shifts[i]);
    spans[i] = static_cast<std::uint16_t>(span << how.shifts[i]);
  }
  const __m256i bytes = load_twice(how.bytes.data()), keep = load_twice(kept);
  const __m256i from = load_twice(lows), most = load_twice(spans);
  for (std::uint32_t word = 0; word < words; ++word) {
    std::uint64_t found = 0;
    _mm_prefetch(reinterpret_cast<const char*>(packed + kAhead), _MM_HINT_T0);
    for (std::uint32_t half = 0; half < 2; ++half, packed += 4 * bits) {
      __m256i within[2];
      for (std::uint32_t i = 0; i < 2; ++i) {
        const std::byte* at = packed + i * bits;
        const __m256i codes = _mm256_shuffle_epi8(load_lanes(at, at + 2 * bits), bytes);
        const __m256i above = _mm256_sub_epi16(_mm256_and_si256(codes, keep), from);
        within[i] = _mm256_cmpeq_epi16(_mm256_min_epu16(above, most), above);
      }
      const int bits_of_32 = _mm256_movemask_epi8(_mm256_packs_epi16(within[0], within[1]));
      found |= std::uint64_t{static_cast<std::uint32_t>(bits_of_32)} << (32 * half);
    }
    mask[word] = found;
  }
}

// The same in lanes of 32 bits, eight codes at a time.
BAMQUERY_AVX2 void narrow_within(const std::byte* packed, std::uint32_t bits, std::uint32_t words,
                                 std::uint32_t low, std::uint32_t span, std::uint64_t* mask) {
  const auto& how = kNarrow[bits];
  const __m256i bytes = load_256(how.bytes.data()), shifts = load_256(how.shifts.data());
  const __m256i keep = moved_up(static_cast<std::uint32_t>(packed_mask(bits)), shifts);
  const __m256i from = moved_up(low, shifts), most = moved_up(span, shifts);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // as packing mixes eights
  for (std::uint32_t word = 0; word < words; ++word) {
    std::uint64_t found = 0;
    for (std::uint32_t half = 0; half < 2; ++half) {
      __m256i within[4];
      _mm_prefetch(reinterpret_cast<const char*>(packed + kAhead), _MM_HINT_T0);
      for (std::uint32_t i = 0; i < 4; ++i, packed += bits) {
        const __m256i codes = _mm256_shuffle_epi8(load_lanes(packed, packed + how.starts[1]), bytes);
        const __m256i above = _mm256_sub_epi32(_mm256_and_si256(codes, keep), from);
        within[i] = _mm256_cmpeq_epi32(_mm256_min_epu32(above, most), above);
      }
      const __m256i sixteens = _mm256_packs_epi16(_mm256_packs_epi32(within[0], within[1]),
                                                  _mm256_packs_epi32(within[2], within[3]));
      const int bits_of_32 = _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(sixteens, order));
      found |= std::uint64_t{static_cast<std::uint32_t>(bits_of_32)} << (32 * half);
    }
    mask[word] = found;
  }
}

}  // namespace

BAMQUERY_AVX2 void packed_within_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t words,
                                      std::uint32_t low, std::uint32_t span, std::uint64_t* mask) {
  if (bits <= kHalfBits) return half_within(packed, bits, words, low, span, mask);
  narrow_within(packed, bits, words, low, span, mask);
}

BAMQUERY_AVX2 void unpack_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t groups,
                               std::uint32_t* out) {
  const auto& how = kNarrow[bits];
  const __m256i bytes = load_256(how.bytes.data());
  const __m256i shifts = load_256(how.shifts.data());
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(packed_mask(bits)));
  for (std::uint32_t group = 0; group < groups; ++group, packed += bits, out += 8) {
    const __m256i found = _mm256_shuffle_epi8(load_lanes(packed, packed + how.starts[1]), bytes);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                       _mm256_and_si256(_mm256_srlv_epi32(found, shifts), mask));
  }
}

BAMQUERY_AVX2 void unpack_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t groups,
                               std::uint64_t* out) {
  const auto& how = kWide[bits];
  const __m256i bytes[2] = {load_256(how.bytes.data()), load_256(how.bytes.data() + 32)};
  const __m256i shifts[2] = {load_256(how.shifts.data()), load_256(how.shifts.data() + 4)};
  const __m256i mask = _mm256_set1_epi64x(static_cast<long long>(packed_mask(bits)));
  for (std::uint32_t group = 0; group < groups; ++group, packed += bits, out += 8) {
    for (std::uint32_t half = 0; half < 2; ++half) {
      const __m256i loaded = load_lanes(packed + how.starts[2 * half], packed + how.starts[2 * half + 1]);
      const __m256i found = _mm256_shuffle_epi8(loaded, bytes[half]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + 4 * half),
                         _mm256_and_si256(_mm256_srlv_epi64(found, shifts[half]), mask));
    }
  }
}

BAMQUERY_AVX512 void unpack_avx512(const std::byte* packed, std::uint32_t bits, std::uint32_t groups,
                                   std::uint32_t* out) {
  const __m512i bytes = _mm512_load_si512(kNarrow512[bits].bytes.data());
  const __m512i shifts = _mm512_load_si512(kNarrow512[bits].shifts.data());
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(packed_mask(bits)));
  for (std::uint32_t group = 0; group < groups; group += 2, packed += 2 * bits, out += 16) {
    const __m512i found = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(packed));
    _mm512_store_si512(out, _mm512_and_si512(_mm512_srlv_epi32(found, shifts), mask));
  }
}

BAMQUERY_AVX512 void unpack_avx512(const std::byte* packed, std::uint32_t bits, std::uint32_t groups,
                                   std::uint64_t* out) {
  const __m512i bytes = _mm512_load_si512(kWide512[bits].bytes.data());
  const __m512i shifts = _mm512_load_si512(kWide512[bits].shifts.data());
  const __m512i mask = _mm512_set1_epi64(static_cast<long long>(packed_mask(bits)));
  for (std::uint32_t group = 0; group < groups; ++group, packed += bits, out += 8) {
    const __m512i found = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(packed));
    _mm512_store_si512(out, _mm512_and_si512(_mm512_srlv_epi64(found, shifts), mask));
  }
}

BAMQUERY_AVX2 void within_avx2(const std::uint32_t* codes, std::uint32_t words, std::uint32_t low,
                               std::uint32_t span, std::uint64_t* mask) {
  const __m256i lows = _mm256_set1_epi32(static_cast<int>(low));
  const __m256i spans = _mm256_set1_epi32(static_cast<int>(span));
  for (std::uint32_t word = 0; word < words; ++word, codes += 64) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const __m256i above = _mm256_sub_epi32(load_256(codes + 8 * i), lows);
      const __m256i within = _mm256_cmpeq_epi32(_mm256_min_epu32(above, spans), above);
      const auto eight = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(within)));
      found |= std::uint64_t{eight} << (8 * i);
    }
    mask[word] = found;
  }
}

BAMQUERY_AVX2 void within_avx2(const std::uint64_t* codes, std::uint32_t words, std::uint64_t low,
                               std::uint64_t span, std::uint64_t* mask) {
  // Comparisons are signed: both sides move by 2^63.
  const __m256i sign = _mm256_set1_epi64x(static_cast<long long>(std::uint64_t{1} << 63));
  const __m256i lows = _mm256_set1_epi64x(static_cast<long long>(low));
  const __m256i spans = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(span)), sign);
  for (std::uint32_t word = 0; word < words; ++word, codes += 64) {
    std::uint64_t outside = 0;
    for (std::uint32_t i = 0; i < 16; ++i) {
      const __m256i above = _mm256_xor_si256(_mm256_sub_epi64(load_256(codes + 4 * i), lows), sign);
      const __m256i beyond = _mm256_cmpgt_epi64(above, spans);
      const auto four = static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(beyond)));
      outside |= std::uint64_t{four} << (4 * i);
    }
    mask[word] = ~outside;
  }
}

BAMQUERY_AVX512 void within_avx512(const std::uint32_t* codes, std::uint32_t words, std::uint32_t low,
                                   std::uint32_t span, std::uint64_t* mask) {
  const __m512i lows = _mm512_set1_epi32(static_cast<int>(low));
  const __m512i spans = _mm512_set1_epi32(static_cast<int>(span));
  for (std::uint32_t word = 0; word < words; ++word, codes += 64) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const __m512i above = _mm512_sub_epi32(_mm512_load_si512(codes + 16 * i), lows);
      found |= std::uint64_t{_mm512_cmple_epu32_mask(above, spans)} << (16 * i);
    }
    mask[word] = found;
  }
}

BAMQUERY_AVX512 void within_avx512(const std::uint64_t* codes, std::uint32_t words, std::uint64_t low,
                                   std::uint64_t span, std::uint64_t* mask) {
  const __m512i lows = _mm512_set1_epi64(static_cast<long long>(low));
  const __m512i spans = _mm512_set1_epi64(static_cast<long long>(span));
  for (std::uint32_t word = 0; word < words; ++word, codes += 64) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const __m512i above = _mm512_sub_epi64(_mm512_load_si512(codes + 8 * i), lows);
      found |= std::uint64_t{_mm512_cmple_epu64_mask(above, spans)} << (8 * i);
    }
    mask[word] = found;
  }
}

}  // namespace bamquery

#endif
