// Codes to values: loops that compilers make vector instructions of.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "storage/core/packed_vector.hpp"

namespace bamquery {

/// n / 10^k as `packed_decimal` says it, by FMA where the caller is compiled for one.
template <bool kFma>
[[gnu::always_inline]] inline double quotient(double n, std::uint32_t exponent) {
  if constexpr (kFma) return __builtin_fma(n, kTenths[exponent], n * kTenthsRest[exponent]);
  return n / kPowersOfTen[exponent];
}

/// Code number i as a double, plus `base`; exact, for which codes and base are below 2^51.
template <typename Code>
[[gnu::always_inline]] inline double exact_number(Code code, double base) {
  if constexpr (sizeof(Code) == 4) {
    return base + static_cast<double>(static_cast<std::int32_t>(code));
  } else {
    // No instruction of AVX2 converts 64 bits: a code in the mantissa of 2^52 is 2^52 + code.
    return base + (std::bit_cast<double>(code | 0x4330000000000000) - 0x1p52);
  }
}

/// The value, or zero where `kept` is false: by masks, since compilers make no vector instructions of choices
/// between doubles.
template <typename T>
[[gnu::always_inline]] inline T keep_if(T value, bool kept) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<T>(std::bit_cast<Word>(value) & (Word{0} - Word{kept}));
}

/// Values of ordinary codes; those from `first` on become zero.
template <bool kFma, typename T, typename Code>
[[gnu::always_inline]] inline void decode_values(const Code* codes, std::uint32_t rows,
                                                 const PackedVector& vector, const PackedScale& scale,
                                                 T* out) {
  const auto first = static_cast<Code>(vector.first_special());  // codes are narrower than Code
  const auto base = static_cast<std::uint64_t>(vector.base);
  if constexpr (std::is_floating_point_v<T>) {
    const std::uint32_t exponent = vector.exponent();
    if (vector.form() == PackedForm::kFloat32) {
      for (std::uint32_t i = 0; i < rows; ++i) {
        const std::uint32_t place = static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(codes[i]);
        const std::uint32_t bits = place ^ ((place >> 31) != 0 ? 0x80000000u : 0xffffffffu);
        const T value = static_cast<T>(std::bit_cast<float>(bits));
        out[i] = keep_if(value, codes[i] < first);
      }
    } else if (vector.bits < 51 && vector.base > -(std::int64_t{1} << 51) &&
               vector.base < std::int64_t{1} << 51) {
      const auto exact_base = static_cast<double>(vector.base);
      for (std::uint32_t i = 0; i < rows; ++i) {
        const T value = static_cast<T>(quotient<kFma>(exact_number(codes[i], exact_base), exponent));
        out[i] = keep_if(value, codes[i] < first);
      }
    } else {
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto n = static_cast<std::int64_t>(base + codes[i]);
        const T value = static_cast<T>(quotient<kFma>(static_cast<double>(n), exponent));
        out[i] = keep_if(value, codes[i] < first);
      }
    }
  } else {
    using Word = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
    const bool scaled = vector.form() == PackedForm::kInteger;
    const auto step = static_cast<Word>(scaled ? scale.divisor : 1);
    const auto start = static_cast<Word>(scaled ? base * scale.divisor + scale.origin : base);
    if (step == 1) {
      for (std::uint32_t i = 0; i < rows; ++i) {
        out[i] =
            codes[i] < first ? static_cast<T>(static_cast<Word>(start + static_cast<Word>(codes[i]))) : T{0};
      }
    } else if (step <= std::numeric_limits<std::uint32_t>::max() && sizeof(Code) == 4) {
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto above = static_cast<Word>(static_cast<Word>(static_cast<std::uint32_t>(codes[i])) *
                                             static_cast<Word>(static_cast<std::uint32_t>(step)));
        out[i] = codes[i] < first ? static_cast<T>(static_cast<Word>(start + above)) : T{0};
      }
    } else {
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto above = static_cast<Word>(static_cast<Word>(codes[i]) * step);
        out[i] = codes[i] < first ? static_cast<T>(static_cast<Word>(start + above)) : T{0};
      }
    }
  }
}

}  // namespace bamquery
