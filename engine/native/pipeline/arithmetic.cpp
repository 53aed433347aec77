#include "engine/native/pipeline/arithmetic.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kExactDoubles = std::int64_t{1} << 53;

// Sums wrap around in unsigned words; a sign that neither side has tells.
BAMQUERY_CLONES bool add(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                         std::int64_t* out) {
  std::int64_t lost = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto sum =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(a[i]) + static_cast<std::uint64_t>(b[i]));
    lost |= (a[i] ^ sum) & (b[i] ^ sum);
    out[i] = sum;
  }
  return lost >= 0;
}

BAMQUERY_CLONES bool subtract(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                              std::int64_t* out) {
  std::int64_t lost = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto difference =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(a[i]) - static_cast<std::uint64_t>(b[i]));
    lost |= (a[i] ^ b[i]) & (a[i] ^ difference);
    out[i] = difference;
  }
  return lost >= 0;
}

// Whether all words are what 32 bits hold with their sign.
BAMQUERY_CLONES bool are_short(const std::int64_t* words, std::int32_t count) {
  std::uint64_t beyond = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    beyond |= (static_cast<std::uint64_t>(words[i]) + 0x80000000u) >> 32;
  }
  return beyond == 0;
}

BAMQUERY_CLONES void multiply_short(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                    std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) {
    out[i] = std::int64_t{static_cast<std::int32_t>(a[i])} * static_cast<std::int32_t>(b[i]);
  }
}

bool multiply(const std::int64_t* a, const std::int64_t* b, std::int32_t count, std::int64_t* out) {
  if (are_short(a, count) && are_short(b, count)) {
    multiply_short(a, b, count, out);
    return true;
  }
  bool lost = false;
  for (std::int32_t i = 0; i < count; ++i) lost |= __builtin_mul_overflow(a[i], b[i], &out[i]);
  return !lost;
}

BAMQUERY_CLONES bool in_range(const std::int64_t* words, std::int32_t count, std::int64_t low,
                              std::int64_t high) {
  std::int64_t outside = 0;
  for (std::int32_t i = 0; i < count; ++i) outside |= (words[i] < low) | (words[i] > high);
  return outside == 0;
}

void divide_rounding(const std::int64_t* a, std::int64_t by, std::int32_t count, std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t quotient = a[i] / by;
    const std::int64_t rest = a[i] - quotient * by;
    const bool up = (rest < 0 ? -rest : rest) >= by - by / 2;
    out[i] = quotient + (up ? (a[i] < 0 ? -1 : 1) : 0);
  }
}

// Whole numbers less than this, and sums of two, are doubles. Added to `kUnits`, whose last digit is one, a
// double is rounded to a whole number, which is what the sum's bits have more than those of `kUnits`.
constexpr std::int64_t kSmallWord = std::int64_t{1} << 51;
constexpr double kUnits = 3.0 * static_cast<double>(kSmallWord);
constexpr std::int64_t kUnitBits = std::bit_cast<std::int64_t>(kUnits);

BAMQUERY_CLONES bool are_small(const std::int64_t* words, std::int32_t count) {
  std::uint64_t beyond = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    beyond |= (static_cast<std::uint64_t>(words[i]) + static_cast<std::uint64_t>(kSmallWord)) >> 52;
  }
  return beyond == 0;
}

// Vector units have no division of words. The quotient by way of the inverse is less than one away from what
// it is, so that the rest, which is exact, tells of one too many.
template <bool kRemainder>
[[gnu::always_inline]] inline void floor_divide_small(const std::int64_t* a, std::int64_t by,
                                                      std::int32_t count, std::int64_t* out) {
  const auto divisor = static_cast<double>(by);
  const double inverse = 1.0 / divisor;
  for (std::int32_t i = 0; i < count; ++i) {
    const double value = std::bit_cast<double>(a[i] + kUnitBits) - kUnits;
    const double quotient = (value * inverse + kUnits) - kUnits;
    const double rest = value - quotient * divisor;
    const std::uint64_t one_less =
        std::bit_cast<std::uint64_t>(rest) >> 63;  // the sign of what is never -0.0
    const std::int64_t found =
        std::bit_cast<std::int64_t>((kRemainder ? rest : quotient) + kUnits) - kUnitBits;
    out[i] = found + (kRemainder ? static_cast<std::int64_t>((0 - one_less) & static_cast<std::uint64_t>(by))
                                 : -static_cast<std::int64_t>(one_less));
  }
}

BAMQUERY_CLONES void floor_quotients(const std::int64_t* a, std::int64_t by, std::int32_t count,
                                     std::int64_t* out) {
  floor_divide_small<false>(a, by, count, out);
}
BAMQUERY_CLONES void floor_remainders(const std::int64_t* a, std::int64_t by, std::int32_t count,
                                      std::int64_t* out) {
  floor_divide_small<true>(a, by, count, out);
}

void floor_divide(const std::int64_t* a, std::int64_t by, std::int32_t count, std::int64_t* out) {
  if (by < kSmallWord && are_small(a, count)) return floor_quotients(a, by, count, out);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t quotient = a[i] / by;
    out[i] = quotient - (a[i] < quotient * by ? 1 : 0);
  }
}

void floor_remainder(const std::int64_t* a, std::int64_t by, std::int32_t count, std::int64_t* out) {
  if (by < kSmallWord && are_small(a, count)) return floor_remainders(a, by, count, out);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t rest = a[i] % by;
    out[i] = rest + (rest < 0 ? by : 0);
  }
}

// Toward zero, or what is left; rows whose divisor is 0 become null. The quotient of the least number and -1
// does not fit, and neither kind of answer is had where it would have to be computed.
bool divide(const Instruction& step, Register* registers, std::int32_t count) {
  Register& out = registers[step.out];
  const Register &a = registers[step.a], &b = registers[step.b];
  spread_validity(out, count);
  bool lost = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::int64_t by = b.words[i];
    if (by == 0 || out.valid[i] == 0) {
      out.valid[i] = 0;
      out.words[i] = 0;
    } else if (by == -1 && a.words[i] == kLeast) {
      lost = true;
    } else {
      out.words[i] = step.operation == Operation::kQuotient ? a.words[i] / by : a.words[i] % by;
    }
  }
  return !lost;
}

BAMQUERY_CLONES bool absolute(const std::int64_t* a, std::int32_t count, std::int64_t* out) {
  std::int64_t lost = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint64_t>(a[i]);
    out[i] = static_cast<std::int64_t>(a[i] < 0 ? 0 - value : value);
    lost |= out[i];
  }
  return lost >= 0;
}

[[gnu::always_inline]] inline double as_double(std::int64_t word) { return std::bit_cast<double>(word); }
[[gnu::always_inline]] inline std::int64_t as_word(double value) {
  return std::bit_cast<std::int64_t>(value);
}

BAMQUERY_CLONES void add_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                 std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = as_word(as_double(a[i]) + as_double(b[i]));
}
BAMQUERY_CLONES void subtract_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                      std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = as_word(as_double(a[i]) - as_double(b[i]));
}
BAMQUERY_CLONES void multiply_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                      std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = as_word(as_double(a[i]) * as_double(b[i]));
}
BAMQUERY_CLONES void divide_doubles(const std::int64_t* a, const std::int64_t* b, std::int32_t count,
                                    std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = as_word(as_double(a[i]) / as_double(b[i]));
}
BAMQUERY_CLONES void change_sign(const std::int64_t* a, std::int64_t keep, std::int64_t flip,
                                 std::int32_t count, std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = (a[i] & keep) ^ flip;
}

void to_doubles(const std::int64_t* a, std::int32_t count, std::int64_t* out) {
  for (std::int32_t i = 0; i < count; ++i) out[i] = as_word(static_cast<double>(a[i]));
}

// Both are exact in a double where the number is small, so that the quotient is rounded once.
void decimals_to_doubles(const std::int64_t* a, std::int64_t scale, std::int32_t count, std::int64_t* out) {
  double power = 1;
  long double wide = 1;
  for (std::int64_t digit = 0; digit < scale; ++digit) {
    power *= 10;
    wide *= 10;
  }
  for (std::int32_t i = 0; i < count; ++i) {
    const bool small = a[i] >= -kExactDoubles && a[i] <= kExactDoubles;
    out[i] = as_word(small ? static_cast<double>(a[i]) / power
                           : static_cast<double>(static_cast<long double>(a[i]) / wide));
  }
}

}  // namespace

bool run_arithmetic(const Instruction& step, Register* registers, std::int32_t count) {
  Register& out = registers[step.out];
  const std::int64_t* const a = registers[step.a].words.data();
  const std::int64_t* const b = registers[step.b].words.data();
  std::int64_t* const words = out.words.data();
  bool fits = true;
  bool zero_stays = true;  // whether a row of zeros, as null ones are, becomes 0
  switch (step.operation) {
    case Operation::kAdd:
      join_validity(step, registers, count);
      fits = add(a, b, count, words);
      zero_stays = false;
      break;
    case Operation::kSubtract:
      join_validity(step, registers, count);
      fits = subtract(a, b, count, words);
      zero_stays = false;
      break;
    case Operation::kMultiply:
      join_validity(step, registers, count);
      fits = multiply(a, b, count, words);
      break;
    case Operation::kRequireRange:
      copy_validity(step, registers, count);
      if (step.immediate <= 0 && step.extra >= 0) {
        fits = in_range(a, count, step.immediate, step.extra);
      } else {
        for (std::int32_t i = 0; i < count; ++i) {
          const bool within = a[i] >= step.immediate && a[i] <= step.extra;
          fits &= within || (!out.all_valid && out.valid[static_cast<std::size_t>(i)] == 0);
        }
      }
      for (std::int32_t i = 0; i < count; ++i) words[i] = a[i];
      break;
    case Operation::kDivideRounding:
      copy_validity(step, registers, count);
      divide_rounding(a, step.immediate, count, words);
      break;
    case Operation::kFloorDivide:
      copy_validity(step, registers, count);
      floor_divide(a, step.immediate, count, words);
      break;
    case Operation::kFloorRemainder:
      copy_validity(step, registers, count);
      floor_remainder(a, step.immediate, count, words);
      break;
    case Operation::kQuotient:
    case Operation::kRemainder:
      join_validity(step, registers, count);
      return divide(step, registers, count);
    case Operation::kAbsolute:
      copy_validity(step, registers, count);
      fits = absolute(a, count, words);
      break;
    case Operation::kAddDoubles:
      join_validity(step, registers, count);
      add_doubles(a, b, count, words);
      zero_stays = false;
      break;
    case Operation::kSubtractDoubles:
      join_validity(step, registers, count);
      subtract_doubles(a, b, count, words);
      zero_stays = false;
      break;
    case Operation::kMultiplyDoubles:
      join_validity(step, registers, count);
      multiply_doubles(a, b, count, words);
      zero_stays = false;  // 0 times infinity is not a number
      break;
    case Operation::kDivideDoubles:
      join_validity(step, registers, count);
      divide_doubles(a, b, count, words);
      zero_stays = false;
      break;
    case Operation::kNegateDoubles:
      copy_validity(step, registers, count);
      change_sign(a, -1, kLeast, count, words);
      zero_stays = false;
      break;
    case Operation::kAbsoluteDoubles:
      copy_validity(step, registers, count);
      change_sign(a, ~kLeast, 0, count, words);
      break;
    case Operation::kToDouble:
      copy_validity(step, registers, count);
      to_doubles(a, count, words);
      break;
    case Operation::kDecimalToDouble:
      copy_validity(step, registers, count);
      decimals_to_doubles(a, step.immediate, count, words);
      break;
    default:
      return false;
  }
  if (!zero_stays) clear_null_words(out, count);
  return fits;
}

}  // namespace bamquery
