#include "storage/native/packed/decode.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "driver/native/threads/shared_work.hpp"
#include "storage/native/bitmap.hpp"
#include "storage/native/packed/decode_values.hpp"

namespace bamquery {
namespace {

#if defined(__x86_64__)
template <typename T, typename Code>
BAMQUERY_AVX2 void decode_values_avx2(const Code* codes, std::uint32_t rows, const PackedVector& vector,
                                      const PackedScale& scale, T* out) {
  decode_values<true>(codes, rows, vector, scale, out);
}
template <typename T, typename Code>
BAMQUERY_AVX512 void decode_values_avx512(const Code* codes, std::uint32_t rows, const PackedVector& vector,
                                          const PackedScale& scale, T* out) {
  decode_values<true>(codes, rows, vector, scale, out);
}
#endif

template <typename T, typename Code>
void decode_ordinary(SimdLevel level, const Code* codes, std::uint32_t rows, const PackedVector& vector,
                     const PackedScale& scale, T* out) {
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return decode_values_avx512(codes, rows, vector, scale, out);
  if (level == SimdLevel::kAvx2) return decode_values_avx2(codes, rows, vector, scale, out);
#else
  static_cast<void>(level);
#endif
  decode_values<false>(codes, rows, vector, scale, out);
}

[[gnu::always_inline]] inline std::uint32_t count_words(const VectorMask& mask) {
  std::uint32_t set = 0;
  for (const std::uint64_t word : mask) set += static_cast<std::uint32_t>(std::popcount(word));
  return set;
}

#if defined(__x86_64__)
BAMQUERY_AVX2 std::uint32_t count_avx2(const VectorMask& mask) {
  return count_words(mask);  // for its instruction that counts
}
#endif

std::uint32_t count(SimdLevel level, const VectorMask& mask) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) return count_avx2(mask);
#else
  static_cast<void>(level);
#endif
  return count_words(mask);
}

// All escapes of a vector: short ones are numbers like those of codes, and as fast.
template <typename T>
void decode_escapes(SimdLevel level, const Payload& payload, const PackedVector& vector,
                    const PackedScale& scale, T* out) {
  if (!vector.has_short_escapes()) {
    for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
      out[e] = packed_escape<T>(vector, scale, payload.escape(e));
    }
    return;
  }
  constexpr std::uint32_t kLowest = 1u << 31;
  std::array<std::uint64_t, kPackedMaxEscapes> above;  // the lowest distance that there may be
  for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
    above[e] = static_cast<std::uint32_t>(payload.escape(e)) ^ kLowest;
  }
  PackedVector numbers{};
  numbers.bits = 33;
  numbers.exponent_form = vector.exponent_form;
  numbers.base = static_cast<std::int64_t>(static_cast<std::uint64_t>(vector.base) - kLowest);
  decode_ordinary(level, above.data(), vector.escapes(), numbers, scale, out);
}

// Codes this narrow are looked up where some are special: many rows may be.
constexpr std::uint32_t kTableBits = 6;

template <typename T, typename Code>
void look_up(SimdLevel level, const Payload& payload, const Code* codes, std::uint32_t rows,
             const PackedVector& vector, const PackedScale& scale, T* out) {
  constexpr std::uint32_t kCodes = 1u << kTableBits;
  std::array<Code, kCodes> every;
  std::iota(every.begin(), every.end(), Code{0});
  std::array<T, kCodes> table;
  decode_ordinary(level, every.data(), kCodes, vector, scale, table.data());
  const auto first = static_cast<std::uint32_t>(vector.first_special());
  decode_escapes(level, payload, vector, scale, table.data() + first);
  for (std::uint32_t row = 0; row < rows; ++row) out[row] = table[codes[row]];
}

template <typename T, typename Code>
void insert_escapes(SimdLevel level, const Payload& payload, const CodeBuffer<Code>& codes,
                    std::uint32_t rows, const PackedVector& vector, const PackedScale& scale, T* out) {
  const std::uint64_t first = vector.first_special();
  VectorMask escaped;
  codes_within(level, codes, rows, first, first + vector.escapes() - 1, escaped.data());
  std::array<T, kPackedMaxEscapes> values;
  decode_escapes(level, payload, vector, scale, values.data());
  const VectorMask all = first_rows(rows);
  for (std::uint32_t word = 0; 64 * word < rows; ++word) {
    for (std::uint64_t left = escaped[word] & all[word]; left != 0; left &= left - 1) {
      const std::uint32_t row = 64 * word + static_cast<std::uint32_t>(std::countr_zero(left));
      out[row] = values[static_cast<std::size_t>(codes.codes[row] - first)];
    }
  }
}

template <typename T, typename Code>
std::uint32_t decode_codes(SimdLevel level, const Payload& payload, const PackedVector& vector,
                           std::uint32_t rows, const PackedScale& scale, T* out, VectorMask& valid) {
  CodeBuffer<Code> codes;
  unpack_codes(level, payload.bytes(), vector.bits, rows, codes);
  const bool has_special = vector.escapes() > 0 || vector.has_nulls();
  if (has_special && vector.bits <= kTableBits) {
    look_up(level, payload, codes.codes, rows, vector, scale, out);
  } else {
    decode_ordinary(level, codes.codes, rows, vector, scale, out);
    if (vector.escapes() > 0) insert_escapes(level, payload, codes, rows, vector, scale, out);
  }
  if (!vector.has_nulls()) return 0;
  VectorMask null;
  codes_within(level, codes, rows, vector.null_code(), vector.null_code(), null.data());
  for (std::uint32_t word = 0; 64 * word < rows; ++word) valid[word] &= ~null[word];
  return rows - count(level, valid);
}

template <typename T>
std::uint32_t copy_raw(SimdLevel level, const Payload& payload, const PackedVector& vector,
                       std::uint32_t rows, T* out, VectorMask& valid) {
  std::memcpy(out, payload.bytes(), rows * sizeof(T));
  if (!vector.has_nulls()) return 0;
  const std::byte* bitmap = payload.bytes() + packed_bitmap_start(rows, sizeof(T));
  for (std::uint32_t word = 0; word < valid.size(); ++word) {
    std::uint64_t set;
    std::memcpy(&set, bitmap + 8 * word, sizeof set);
    valid[word] &= set;
  }
  return rows - count(level, valid);
}

}  // namespace

VectorMask first_rows(std::uint32_t rows) {
  VectorMask mask{};
  for (std::uint32_t word = 0; 64 * word < rows; ++word) {
    const std::uint32_t left = rows - 64 * word;
    mask[word] = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  }
  return mask;
}

std::uint32_t store_mask(SimdLevel level, const VectorMask& mask, std::uint32_t rows, std::uint8_t* bitmap,
                         std::int64_t row) {
  if (rows < kPackedVectorRows || row % 8 != 0) {
    return static_cast<std::uint32_t>(
        copy_bits({reinterpret_cast<const std::uint8_t*>(mask.data()), 0}, rows, bitmap, row));
  }
  std::memcpy(bitmap + row / 8, mask.data(), sizeof mask);
  return count(level, mask);
}

template <typename T>
void store_values(ValueKind kind, const T* decoded, std::uint32_t rows, std::byte* values, std::int64_t row) {
  if (kind == ValueKind::kBool) {
    VectorMask bits{};
    for (std::uint32_t i = 0; i < rows; ++i) {
      bits[i / 64] |= (static_cast<std::uint64_t>(decoded[i]) & 1) << (i % 64);
    }
    copy_bits({reinterpret_cast<const std::uint8_t*>(bits.data()), 0}, rows,
              reinterpret_cast<std::uint8_t*>(values), row);
  } else {
    std::byte* at = values + 16 * row;  // low halves, then high ones: their signs
    for (std::uint32_t i = 0; i < rows; ++i, at += 16) {
      const auto low = static_cast<std::int64_t>(decoded[i]);
      const std::int64_t high = low >> 63;
      std::memcpy(at, &low, sizeof low);
      std::memcpy(at + 8, &high, sizeof high);
    }
  }
}

template <typename T>
std::uint32_t decode_vector(SimdLevel level, const Payload& payload, const PackedVector& vector,
                            std::uint32_t rows, const PackedScale& scale, T* out, VectorMask& valid) {
  valid = first_rows(rows);
  if (vector.is_raw()) return copy_raw(level, payload, vector, rows, out, valid);
  if (vector.bits <= kNarrowBits) {
    return decode_codes<T, std::uint32_t>(level, payload, vector, rows, scale, out, valid);
  }
  return decode_codes<T, std::uint64_t>(level, payload, vector, rows, scale, out, valid);
}

namespace {

// Vectors that are worth another thread.
constexpr std::int64_t kLeastSharedVectors = 64;

// Whether all but the last have as many rows as a vector can.
bool are_full(std::span<const std::int64_t> rows) {
  return std::all_of(rows.begin(), rows.empty() ? rows.end() : rows.end() - 1,
                     [](std::int64_t count) { return count == kPackedVectorRows; });
}

// Of vectors [begin, end), all before which are full.
std::int64_t unpack_run(ValueKind kind, std::span<const std::byte> payload,
                        std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                        std::span<const std::int64_t> rows, const PackedScale& scale, std::byte* values,
                        std::uint8_t* bitmap, std::size_t begin, std::size_t end) {
  const SimdLevel level = simd_level();
  const PackedKind packed = packed_kind(kind);
  return with_packed_type(kind, [&]<typename T>(T) {
    const bool in_place = packed.width == sizeof(T) && kind != ValueKind::kBool;
    std::int64_t row = static_cast<std::int64_t>(begin) * kPackedVectorRows;
    std::int64_t nulls = 0;
    for (std::size_t v = begin; v < end; ++v) {
      const Payload found(payload, starts[v], vectors[v], rows[v], packed, static_cast<std::int64_t>(v));
      const auto count_of = static_cast<std::uint32_t>(rows[v]);
      VectorMask valid;
      if (in_place) {
        auto* out = reinterpret_cast<T*>(values + row * static_cast<std::int64_t>(sizeof(T)));
        nulls += decode_vector(level, found, vectors[v], count_of, scale, out, valid);
      } else {
        std::array<T, kPackedVectorRows> decoded;
        nulls += decode_vector(level, found, vectors[v], count_of, scale, decoded.data(), valid);
        store_values(kind, decoded.data(), count_of, values, row);
      }
      if (bitmap != nullptr) {
        store_mask(level, valid, count_of, bitmap, row);
      }
      row += count_of;
    }
    return nulls;
  });
}

}  // namespace

std::int64_t unpack_vectors(ValueKind kind, std::span<const std::byte> payload,
                            std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                            std::span<const std::int64_t> rows, const PackedScale& scale, std::byte* values,
                            std::uint8_t* bitmap) {
  const auto count_of_vectors = static_cast<std::int64_t>(vectors.size());
  // Runs of full vectors begin with a byte of the bitmap.
  const std::int64_t parts = are_full(rows) ? worth_parts(count_of_vectors, kLeastSharedVectors) : 1;
  std::atomic<std::int64_t> nulls = 0;
  share_items(count_of_vectors, parts, 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    nulls += unpack_run(kind, payload, starts, vectors, rows, scale, values, bitmap,
                        static_cast<std::size_t>(first), static_cast<std::size_t>(first + count));
  });
  return nulls;
}

#define BAMQUERY_DECODE(T)                                                                               \
  template void store_values<T>(ValueKind, const T*, std::uint32_t, std::byte*, std::int64_t);           \
  template std::uint32_t decode_vector<T>(SimdLevel, const Payload&, const PackedVector&, std::uint32_t, \
                                          const PackedScale&, T*, VectorMask&)
BAMQUERY_DECODE(std::int8_t);
BAMQUERY_DECODE(std::int16_t);
BAMQUERY_DECODE(std::int32_t);
BAMQUERY_DECODE(std::int64_t);
BAMQUERY_DECODE(std::uint8_t);
BAMQUERY_DECODE(std::uint16_t);
BAMQUERY_DECODE(std::uint32_t);
BAMQUERY_DECODE(std::uint64_t);
BAMQUERY_DECODE(float);
BAMQUERY_DECODE(double);
#undef BAMQUERY_DECODE

}  // namespace bamquery
