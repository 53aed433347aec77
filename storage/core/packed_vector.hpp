// How 1,024 values of one column lie packed, and how they are read: for CPUs and GPUs.
#pragma once

#include "driver/core/platform.hpp"

#if defined(__CUDACC__)
#define BAMQUERY_TABLE __constant__ const
#else
#define BAMQUERY_TABLE inline constexpr
#endif

namespace bamquery {

inline constexpr uint32_t kPackedVectorRows = 1024;
inline constexpr uint32_t kPackedPartRows = 128;
inline constexpr uint32_t kPackedMaxBits =
    56;  ///< So that a code lies within 8 bytes, whatever bit it starts at.
inline constexpr uint32_t kPackedRawBits = 64;
inline constexpr uint32_t kPackedMaxEscapes = 1023;
inline constexpr uint32_t kPackedMaxExponent = 15;
inline constexpr uint32_t kPackedBitmapBytes = kPackedVectorRows / 8;

/// What the number n = base + code of a row means.
enum class PackedForm : uint8_t {
  kInteger = 0,  ///< n * divisor + origin of the column, modulo 2^64 and cut to the type's width.
  kDecimal = 1,  ///< n / 10^exponent, correctly rounded; as a float that double is rounded once more.
  kFloat32 = 2,  ///< The float whose place among all floats is n: see `float32_at`.
  kRaw = 3,      ///< Nothing is packed: plain values, then a bitmap where some are null.
  kUnscaled = 4  ///< n itself: an integer to which the column's divisor and origin do not apply.
};
inline constexpr uint32_t kPackedForms = 5;

/// The decode parameters of a vector, as files have them. bamquery.storage.encodings.packed.parameters has
/// the same for numpy.
///
/// Codes of b bits: `first_special()` ordinary ones, then as many escapes (values behind the codes), then
/// NULL as the very last where there are nulls. Escapes are whole values of 8 bytes each, or, where all of
/// them have numbers near the base, these as 4 bytes.
struct PackedVector {
  uint32_t offset;         ///< Of the payload in the column's data, in units of 16 bytes.
  uint8_t bits;            ///< Of a code: 0 to 56; 64 if raw.
  uint8_t exponent_form;   ///< Low 5 bits: exponent of a decimal; high 3 bits: the form.
  uint16_t escapes_nulls;  ///< Low 14 bits: how many escapes; then a bit whether these have 4 bytes, and
                           ///< one whether there are nulls.
  int64_t base;

  BAMQUERY_CORE PackedForm form() const { return static_cast<PackedForm>(exponent_form >> 5); }
  BAMQUERY_CORE uint32_t exponent() const { return exponent_form & 31u; }
  BAMQUERY_CORE uint32_t escapes() const { return escapes_nulls & 0x3fffu; }
  BAMQUERY_CORE bool has_short_escapes() const { return (escapes_nulls >> 14 & 1u) != 0; }
  BAMQUERY_CORE uint32_t escape_bytes() const { return has_short_escapes() ? 4 : 8; }
  BAMQUERY_CORE bool has_nulls() const { return (escapes_nulls >> 15) != 0; }
  BAMQUERY_CORE bool is_raw() const { return bits == kPackedRawBits; }
  BAMQUERY_CORE uint64_t payload_start() const { return uint64_t{16} * offset; }

  /// The first code that is no ordinary one. Of what `packed_fault` lets pass, and not raw.
  BAMQUERY_CORE uint64_t first_special() const {
    return (uint64_t{1} << bits) - escapes() - (has_nulls() ? 1u : 0u);
  }
  /// The code of NULL; no code is that large where there are no nulls.
  BAMQUERY_CORE uint64_t null_code() const { return has_nulls() ? (uint64_t{1} << bits) - 1 : ~uint64_t{0}; }
};
static_assert(sizeof(PackedVector) == 16);

/// What all vectors of a column share.
struct PackedScale {
  uint64_t divisor;
  uint64_t origin;
};

BAMQUERY_CORE uint64_t round_up_16(uint64_t bytes) { return (bytes + 15) & ~uint64_t{15}; }

/// Bytes of the codes of so many rows; escapes lie behind them.
BAMQUERY_CORE uint64_t packed_code_bytes(uint32_t bits, uint32_t rows) {
  return uint64_t{(rows + kPackedPartRows - 1) / kPackedPartRows} * 16 * bits;
}

/// Where the bitmap of a raw vector lies in its payload; `width` is that of a value in bytes.
BAMQUERY_CORE uint64_t packed_bitmap_start(uint32_t rows, uint32_t width) {
  return round_up_16(uint64_t{rows} * width);
}

/// Bytes of a whole payload: a multiple of 16.
BAMQUERY_CORE uint64_t packed_bytes(const PackedVector& vector, uint32_t rows, uint32_t width) {
  if (vector.is_raw()) {
    return packed_bitmap_start(rows, width) + (vector.has_nulls() ? kPackedBitmapBytes : 0u);
  }
  return round_up_16(packed_code_bytes(vector.bits, rows) +
                     uint64_t{vector.escape_bytes()} * vector.escapes());
}

/// Which forms values of a type may have.
enum class PackedType : uint8_t {
  kWholeNumber,  ///< Integers of up to 64 bits: integer, unscaled, raw.
  kFloating,     ///< decimal, float32, raw.
  kNeverRaw      ///< Booleans, and decimals of which the low 64 bits say all: integer, unscaled.
};

/// What is wrong with parameters; the numbers are bamquery.storage.encodings.packed.parameters' as well.
enum class PackedFault : uint8_t { kNone, kForm, kExponent, kBits, kEscapes, kPayload };

/// Whether parameters are possible, for `rows` of `width` bytes each and a payload that starts
/// `available` bytes before the end of the data. Whatever passes can be decoded without another look.
BAMQUERY_CORE PackedFault packed_fault(const PackedVector& vector, PackedType type, uint32_t rows,
                                       uint32_t width, uint64_t available) {
  const PackedForm form = vector.form();
  const bool whole = form == PackedForm::kInteger || form == PackedForm::kUnscaled;
  const bool floating = form == PackedForm::kDecimal || form == PackedForm::kFloat32;
  if (static_cast<uint32_t>(form) >= kPackedForms) return PackedFault::kForm;
  if (type == PackedType::kFloating ? whole : floating) return PackedFault::kForm;
  if (type == PackedType::kNeverRaw && form == PackedForm::kRaw) return PackedFault::kForm;
  if (vector.exponent() > (form == PackedForm::kDecimal ? kPackedMaxExponent : 0u)) {
    return PackedFault::kExponent;
  }
  if (form == PackedForm::kRaw ? !vector.is_raw() : vector.bits > kPackedMaxBits) return PackedFault::kBits;
  if (form == PackedForm::kRaw) {
    if (vector.escapes() != 0 || vector.has_short_escapes()) return PackedFault::kEscapes;
  } else {
    const uint64_t special = vector.escapes() + (vector.has_nulls() ? 1u : 0u);
    const bool none_short = vector.has_short_escapes() && vector.escapes() == 0;
    if (vector.escapes() > kPackedMaxEscapes || special > uint64_t{1} << vector.bits || none_short) {
      return PackedFault::kEscapes;
    }
  }
  return packed_bytes(vector, rows, width) > available ? PackedFault::kPayload : PackedFault::kNone;
}

/// The lowest `bits` bits.
BAMQUERY_CORE uint64_t packed_mask(uint32_t bits) { return (uint64_t{1} << bits) - 1; }

/// Code number `index` of codes that start at `codes`: parts lie end to end, so that it starts at bit
/// index * bits. Loads only words that hold some of it.
BAMQUERY_CORE uint64_t packed_code(const uint64_t* codes, uint32_t bits, uint32_t index) {
  if (bits == 0) return 0;
  const uint32_t bit = index * bits;
  const uint32_t shift = bit & 63u;
  const uint64_t* at = codes + (bit >> 6);
  uint64_t found = at[0] >> shift;
  if (shift + bits > 64) found |= at[1] << (64 - shift);
  return found & packed_mask(bits);
}

/// The same from the 8 bytes that start with byte `index * bits / 8`.
BAMQUERY_CORE uint64_t packed_code_of_word(uint64_t word, uint32_t bits, uint32_t index) {
  return (word >> ((index * bits) & 7u)) & packed_mask(bits);
}

/// 10^k; the double next to 10^-k; the double next to what that one lacks.
BAMQUERY_TABLE double kPowersOfTen[16] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
BAMQUERY_TABLE double kTenths[16] = {
    0x1.0000000000000p+0,  0x1.999999999999ap-4,  0x1.47ae147ae147bp-7,  0x1.0624dd2f1a9fcp-10,
    0x1.a36e2eb1c432dp-14, 0x1.4f8b588e368f1p-17, 0x1.0c6f7a0b5ed8dp-20, 0x1.ad7f29abcaf48p-24,
    0x1.5798ee2308c3ap-27, 0x1.12e0be826d695p-30, 0x1.b7cdfd9d7bdbbp-34, 0x1.5fd7fe1796495p-37,
    0x1.19799812dea11p-40, 0x1.c25c268497682p-44, 0x1.6849b86a12b9bp-47, 0x1.203af9ee75616p-50};
BAMQUERY_TABLE double kTenthsRest[16] = {0x0.0p+0,
                                         -0x1.999999999999ap-58,
                                         -0x1.eb851eb851eb8p-63,
                                         -0x1.89374bc6a7efap-66,
                                         -0x1.6a161e4f765fep-68,
                                         -0x1.ee78183f91e64p-71,
                                         0x1.b5a63f9a49c2cp-75,
                                         0x1.5e1e99483b023p-78,
                                         -0x1.03023df2d4c94p-82,
                                         -0x1.34674bfabb83bp-84,
                                         -0x1.20a5465df8d2cp-88,
                                         0x1.7f7bc7b4d28aap-91,
                                         0x1.97f27f0f6e886p-96,
                                         -0x1.ecd79a5a0df95p-99,
                                         0x1.ea70909833de7p-107,
                                         -0x1.937831647f5a0p-104};

/// n / 10^k, correctly rounded, k up to 15.
///
/// Where there is an FMA: n (zh + zl) by it, where zh + zl is 10^-k but for 2^-106 of it. Before the one
/// rounding that differs from the quotient by less than 2^-104.9 of it; but two neighbours' middle m 2^q, m
/// below 2^54, differs by at least 1 / (m 10^k), which is above 2^-103.9, and never by nothing, since
/// n = m 2^q 10^k needs more than the 53 bits of n. So both round alike (after Brisebarre, Muller, Raina,
/// IEEE TC 53(8), 2004), and bits never depend on there being an FMA.
BAMQUERY_CORE double packed_decimal(double n, uint32_t k) {
#if defined(__CUDACC__)
  return __fma_rn(n, kTenths[k], __dmul_rn(n, kTenthsRest[k]));
#else
  return n / kPowersOfTen[k];
#endif
}

/// The bits of the float whose place among all floats is `place`: negative ones from below, then -0, +0 and
/// the positive ones. Each float has one place, NaNs at both ends.
BAMQUERY_CORE uint32_t float32_at(uint32_t place) {
  return (place >> 31) != 0 ? place ^ 0x80000000u : ~place;
}
BAMQUERY_CORE uint32_t float32_place(uint32_t bits) { return (bits >> 31) != 0 ? ~bits : bits ^ 0x80000000u; }

/// A value of type T by its bits in the low bytes of `bits`.
template <typename T>
BAMQUERY_CORE T value_of_bits(uint64_t bits) {
  T value;
#if defined(__CUDACC__)
  memcpy(&value, &bits, sizeof value);
#else
  __builtin_memcpy(&value, &bits, sizeof value);  // least significant byte first, as on every GPU
#endif
  return value;
}

/// The value that n = base + code, modulo 2^64, means. Decimals of 128 bits are decoded as int64_t, booleans
/// as uint8_t.
template <typename T>
BAMQUERY_CORE T packed_value(PackedForm form, uint32_t exponent, const PackedScale& scale, uint64_t n) {
  if constexpr (static_cast<T>(0.5) != T{0}) {
    if (form == PackedForm::kDecimal) {
      return static_cast<T>(packed_decimal(static_cast<double>(static_cast<int64_t>(n)), exponent));
    }
    return static_cast<T>(value_of_bits<float>(float32_at(static_cast<uint32_t>(n))));
  } else {
    return static_cast<T>(form == PackedForm::kInteger ? n * scale.divisor + scale.origin : n);
  }
}

/// The value of an escape that begins with the lowest bytes of `word`.
template <typename T>
BAMQUERY_CORE T packed_escape(const PackedVector& vector, const PackedScale& scale, uint64_t word) {
  if (!vector.has_short_escapes()) return value_of_bits<T>(word);
  const auto above = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(word)));
  return packed_value<T>(vector.form(), vector.exponent(), scale,
                         static_cast<uint64_t>(vector.base) + static_cast<uint64_t>(above));
}

}  // namespace bamquery
