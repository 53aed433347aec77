// A program over columns: what a query computes of rows, one vector of 1,024 after the other.
#pragma once

#include <cstdint>

namespace bamquery {

inline constexpr std::int32_t kProgramRows = 1024;  ///< Rows that an instruction is about at once.

/// What an instruction does. bamquery.engine.pipeline.instructions has the same numbers.
///
/// Registers hold 64-bit words (whole numbers, or doubles), or flags. A row that is null has a word of 0, a
/// flag of 0. Unless an operation says otherwise, a row is null where one of its arguments is.
enum class Operation : std::uint16_t {
  kLoad = 0,          ///< Input number `immediate`.
  kConstant = 1,      ///< `immediate` in every row; null where `extra` is not 0.
  kConstantFlag = 2,  ///< The same as a flag.
  kAdd = 3,           ///< Whole numbers: what does not fit 64 bits makes the program fail.
  kSubtract = 4,
  kMultiply = 5,
  kRequireRange = 6,    ///< `a`, which must be from `immediate` to `extra`, or the program fails.
  kDivideRounding = 7,  ///< a / immediate, a power of ten, half away from zero.
  kQuotient = 8,        ///< a / b toward zero, null where b is 0.
  kRemainder = 9,       ///< With the sign of a, null where b is 0.
  kAbsolute = 10,
  kAddDoubles = 11,
  kSubtractDoubles = 12,
  kMultiplyDoubles = 13,
  kDivideDoubles = 14,
  kNegateDoubles = 15,
  kAbsoluteDoubles = 16,
  kToDouble = 17,         ///< The double next to a whole number.
  kDecimalToDouble = 18,  ///< The double next to a / 10^immediate.
  kEqual = 19,            ///< Whole numbers to flags.
  kNotEqual = 20,
  kLess = 21,
  kLessEqual = 22,
  kEqualDoubles = 23,  ///< NaN equals NaN and is greater than every number, -0.0 equals 0.0.
  kNotEqualDoubles = 24,
  kLessDoubles = 25,
  kLessEqualDoubles = 26,
  kAnd = 27,  ///< In three-valued logic.
  kOr = 28,
  kNot = 29,
  kIsNull = 30,  ///< Of words or flags; never null.
  kIsNotNull = 31,
  kChoose = 32,      ///< Where flag `a` is true b, else c; words. Null where that one is.
  kChooseFlag = 33,  ///< The same of flags.
  kCoalesce = 34,    ///< Where a is not null a, else b; words.
  kFlagToWord = 35,  ///< 0 or 1.
  kYear = 36,        ///< Of days since 1970, in the proleptic Gregorian calendar.
  kMonth = 37,
  kDay = 38,
  kFloorDivide = 39,     ///< a / immediate toward minus infinity.
  kFloorRemainder = 40,  ///< What that leaves, from 0 on.
  kDayOfYear = 41,       ///< Of days since 1970, from 1 on.
};
inline constexpr std::uint16_t kOperations = 42;

/// One step: registers `a`, `b` and `c` to register `out`.
struct Instruction {
  Operation operation;
  std::uint16_t out;
  std::uint16_t a;
  std::uint16_t b;
  std::uint16_t c;
  std::int64_t immediate;
  std::int64_t extra;
};

}  // namespace bamquery
