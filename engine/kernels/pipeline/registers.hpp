// What instructions of a program are on a GPU: one thread computes one row. Instruction.hpp of the native
// interpreter says what each one does, and the CPU's answers are the ones wanted.
//
// Generated text includes this and nothing else, and this includes nothing: what a program costs to compile
// is what is here.
#pragma once

namespace bamquery {

using Word = long long;
using Unsigned = unsigned long long;

/// A whole number, or the bits of a double. Of a row that is null, 0.
struct Value {
  Word word;
  bool valid;
};

/// A truth value. Of a row that is null, false.
struct Flag {
  bool is;
  bool valid;
};

/// A column of the frame: values from the first row on, and bits that say which rows are valid; none: all
/// are. Where there are places, row n of the frame is the one at places[n]. Decimals that are narrow have 64
/// bits each, others 128: which of them is no matter of the text, since the same columns come both ways.
struct Input {
  const void* values;
  const unsigned* valid;
  int first_bit;
  int narrow;
  const int* places;

  __device__ Word at(Word row) const { return places == nullptr ? row : places[row]; }
};

/// A column that is made: a value a row, and a bit a row where some may be null.
struct Output {
  void* values;
  unsigned* valid;
};

__device__ inline bool is_set(const unsigned* bits, Word at) { return (bits[at >> 5] >> (at & 31) & 1) != 0; }

__device__ inline double number(Value value) { return __longlong_as_double(value.word); }
__device__ inline Value value_of(double number, bool valid) {
  return {valid ? __double_as_longlong(number) : 0, valid};
}
__device__ inline Value value_of(Word word, bool valid) { return {valid ? word : 0, valid}; }

// Loads.

template <typename T>
__device__ inline Word stored_word(const Input& column, Word row, bool, bool&) {
  return static_cast<Word>(static_cast<const T*>(column.values)[row]);
}

struct Decimal {};  // 128 bits, or 64
struct Single {};   // float
struct Double {};

template <>
__device__ inline Word stored_word<Decimal>(const Input& column, Word row, bool valid, bool& lost) {
  const Word* const words = static_cast<const Word*>(column.values);
  if (column.narrow != 0) return words[row];
  const Word low = words[2 * row];
  lost |= valid && words[2 * row + 1] != low >> 63;
  return low;
}
template <>
__device__ inline Word stored_word<Single>(const Input& column, Word row, bool, bool&) {
  return __double_as_longlong(static_cast<double>(static_cast<const float*>(column.values)[row]));
}
template <>
__device__ inline Word stored_word<Double>(const Input& column, Word row, bool, bool&) {
  return static_cast<const Word*>(column.values)[row];
}

template <typename T, bool kNullable>
__device__ inline Value load(const Input& column, Word frame_row, bool& lost) {
  const Word row = column.at(frame_row);
  const bool valid = !kNullable || column.valid == nullptr || is_set(column.valid, column.first_bit + row);
  return value_of(stored_word<T>(column, row, valid, lost), valid);
}

/// Of a column with one byte a row.
template <bool kNullable>
__device__ inline Flag load_flag(const Input& column, Word frame_row) {
  const Word row = column.at(frame_row);
  const bool valid = !kNullable || column.valid == nullptr || is_set(column.valid, column.first_bit + row);
  return {valid && static_cast<const unsigned char*>(column.values)[row] != 0, valid};
}

// Arithmetic. What does not fit 64 bits is lost.

__device__ inline Value add(Value a, Value b, bool& lost) {
  const Word sum = static_cast<Word>(static_cast<Unsigned>(a.word) + static_cast<Unsigned>(b.word));
  const bool valid = a.valid && b.valid;
  lost |= valid && ((a.word ^ sum) & (b.word ^ sum)) < 0;
  return value_of(sum, valid);
}

__device__ inline Value subtract(Value a, Value b, bool& lost) {
  const Word rest = static_cast<Word>(static_cast<Unsigned>(a.word) - static_cast<Unsigned>(b.word));
  const bool valid = a.valid && b.valid;
  lost |= valid && ((a.word ^ b.word) & (a.word ^ rest)) < 0;
  return value_of(rest, valid);
}

__device__ inline Value multiply(Value a, Value b, bool& lost) {
  const Word product = static_cast<Word>(static_cast<Unsigned>(a.word) * static_cast<Unsigned>(b.word));
  const bool valid = a.valid && b.valid;
  lost |= valid && __mul64hi(a.word, b.word) != product >> 63;
  return value_of(product, valid);
}

__device__ inline Value require_range(Value a, Word low, Word high, bool& lost) {
  lost |= a.valid && (a.word < low || a.word > high);
  return a;
}

__device__ inline Value divide_rounding(Value a, Word by) {
  const Word quotient = a.word / by;
  const Word rest = a.word - quotient * by;
  const bool away = (rest < 0 ? -rest : rest) >= by - by / 2;
  return value_of(quotient + (away ? (a.word < 0 ? -1 : 1) : 0), a.valid);
}

__device__ inline Value floor_divide(Value a, Word by) {
  const Word quotient = a.word / by;
  return value_of(quotient - (a.word < quotient * by ? 1 : 0), a.valid);
}

__device__ inline Value floor_remainder(Value a, Word by) {
  const Word rest = a.word % by;
  return value_of(rest + (rest < 0 ? by : 0), a.valid);
}

template <bool kRemainder>
__device__ inline Value divide(Value a, Value b, bool& lost) {
  const bool valid = a.valid && b.valid && b.word != 0;
  const bool beyond = valid && b.word == -1 && a.word == static_cast<Word>(1ull << 63);
  lost |= beyond;
  if (!valid || beyond) return {0, valid};
  return {kRemainder ? a.word % b.word : a.word / b.word, true};
}
__device__ inline Value quotient(Value a, Value b, bool& lost) { return divide<false>(a, b, lost); }
__device__ inline Value remainder(Value a, Value b, bool& lost) { return divide<true>(a, b, lost); }

__device__ inline Value absolute(Value a, bool& lost) {
  const Word made = a.word < 0 ? static_cast<Word>(0 - static_cast<Unsigned>(a.word)) : a.word;
  lost |= made < 0;
  return {made, a.valid};
}

// Doubles, each operation rounded by itself.

__device__ inline Value add_doubles(Value a, Value b) {
  return value_of(__dadd_rn(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Value subtract_doubles(Value a, Value b) {
  return value_of(__dadd_rn(number(a), -number(b)), a.valid && b.valid);
}
__device__ inline Value multiply_doubles(Value a, Value b) {
  return value_of(__dmul_rn(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Value divide_doubles(Value a, Value b) {
  return value_of(__ddiv_rn(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Value negate_doubles(Value a) {
  return value_of(static_cast<Word>(static_cast<Unsigned>(a.word) ^ 1ull << 63), a.valid);
}
__device__ inline Value absolute_doubles(Value a) {
  return value_of(static_cast<Word>(static_cast<Unsigned>(a.word) & ~(1ull << 63)), a.valid);
}
__device__ inline Value to_double(Value a) { return value_of(__ll2double_rn(a.word), a.valid); }

/// The double next to a / power: both are exact in a double, or the number is lost.
__device__ inline Value decimal_to_double(Value a, double power, bool& lost) {
  constexpr Word kExact = 1ll << 53;
  lost |= a.word > kExact || a.word < -kExact;
  return value_of(__ddiv_rn(__ll2double_rn(a.word), power), a.valid);
}

// Comparisons. NaN equals NaN and is greater than every number.

__device__ inline Flag flag_of(bool is, bool valid) { return {is && valid, valid}; }
__device__ inline Flag equal(Value a, Value b) { return flag_of(a.word == b.word, a.valid && b.valid); }
__device__ inline Flag not_equal(Value a, Value b) { return flag_of(a.word != b.word, a.valid && b.valid); }
__device__ inline Flag less(Value a, Value b) { return flag_of(a.word < b.word, a.valid && b.valid); }
__device__ inline Flag less_equal(Value a, Value b) { return flag_of(a.word <= b.word, a.valid && b.valid); }

__device__ inline bool same_double(double a, double b) { return a == b || (a != a && b != b); }
__device__ inline bool lesser_double(double a, double b) { return a < b || (a == a && b != b); }
__device__ inline Flag equal_doubles(Value a, Value b) {
  return flag_of(same_double(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Flag not_equal_doubles(Value a, Value b) {
  return flag_of(!same_double(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Flag less_doubles(Value a, Value b) {
  return flag_of(lesser_double(number(a), number(b)), a.valid && b.valid);
}
__device__ inline Flag less_equal_doubles(Value a, Value b) {
  return flag_of(!lesser_double(number(b), number(a)), a.valid && b.valid);
}

// Three-valued logic.

__device__ inline Flag logical_and(Flag a, Flag b) {
  const bool settled = (a.valid && !a.is) || (b.valid && !b.is);
  return {a.is && b.is, (a.valid && b.valid) || settled};
}
__device__ inline Flag logical_or(Flag a, Flag b) {
  return {a.is || b.is, (a.valid && b.valid) || a.is || b.is};
}
__device__ inline Flag logical_not(Flag a) { return {a.valid && !a.is, a.valid}; }
template <typename T>
__device__ inline Flag is_null(T a) {
  return {!a.valid, true};
}
template <typename T>
__device__ inline Flag is_not_null(T a) {
  return {a.valid, true};
}
template <typename T>
__device__ inline T choose(Flag condition, T yes, T no) {
  return condition.is ? yes : no;
}
__device__ inline Value coalesce(Value a, Value b) { return a.valid ? a : b; }
__device__ inline Value flag_to_word(Flag a) { return {a.is ? 1 : 0, a.valid}; }

// Calendar: eras of 400 years that begin on a first of March (Howard Hinnant, "chrono-Compatible Low-Level
// Date Algorithms", civil_from_days).

struct CivilDay {
  Word year, month, day, of_year;
};

__device__ inline bool is_leap(Word year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

__device__ inline CivilDay civil_of(Word days) {
  const Word shifted = days + 719468;
  const Word era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const Word of_era = shifted - era * 146097;
  const Word year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const Word of_year = of_era - (365 * year + year / 4 - year / 100);
  const Word shifted_month = (5 * of_year + 2) / 153;
  const Word month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const Word own_year = year + era * 400 + (month <= 2 ? 1 : 0);
  return {own_year, month, of_year - (153 * shifted_month + 2) / 5 + 1,
          month <= 2 ? of_year - 305 : of_year + 60 + (is_leap(own_year) ? 1 : 0)};
}

__device__ inline CivilDay date_of(Value days, bool& lost) {
  constexpr Word kFarthestDay = 1ll << 40;
  const bool beyond = days.word > kFarthestDay || days.word < -kFarthestDay;
  lost |= beyond;
  return civil_of(beyond ? 0 : days.word);
}
__device__ inline Value year(Value a, bool& lost) { return value_of(date_of(a, lost).year, a.valid); }
__device__ inline Value month(Value a, bool& lost) { return value_of(date_of(a, lost).month, a.valid); }
__device__ inline Value day(Value a, bool& lost) { return value_of(date_of(a, lost).day, a.valid); }
__device__ inline Value day_of_year(Value a, bool& lost) {
  return value_of(date_of(a, lost).of_year, a.valid);
}

// What is made.

template <typename T>
__device__ inline void store_value(const Output& to, Word row, Word word) {
  static_cast<T*>(to.values)[row] = static_cast<T>(word);
}
template <>
__device__ inline void store_value<Decimal>(const Output& to, Word row, Word word) {
  Word* const words = static_cast<Word*>(to.values) + 2 * row;
  words[0] = word;
  words[1] = word >> 63;
}

/// Bits of a warp's 32 rows; whole warps call, and rows beyond the last one are not valid. Returns the lane's
/// number of nulls.
__device__ inline unsigned store_valid(const Output& to, Word row, bool valid, bool here) {
  const unsigned bits = __ballot_sync(~0u, valid && here);
  if ((row & 31) == 0 && here) to.valid[row >> 5] = bits;
  return here && !valid ? 1 : 0;
}

/// The number of a warp's lanes together, added to a word.
__device__ inline void add_up(unsigned mine, unsigned* total) {
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(~0u, mine, distance);
  }
  if ((threadIdx.x & 31) == 0 && mine != 0) atomicAdd(total, mine);
}

}  // namespace bamquery
