// Values to the numbers that packed forms have for them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "storage/core/packed_vector.hpp"
#include "storage/native/packed/simd_level.hpp"

namespace bamquery {

/// Numbers of a vector's values in one form, and which values have none.
struct VectorNumbers {
  std::array<std::int64_t, kPackedVectorRows> numbers;  ///< Of values without a number, any that another has.
  std::uint32_t misfits = 0;                            ///< Values that no number means, bit for bit.
  std::array<std::uint16_t, kPackedVectorRows> misfit_rows;  ///< The places of these, ascending.
  std::int64_t low = 0;                                      ///< The least number, and the greatest.
  std::int64_t high = 0;
};

/// How integers of a column become numbers by its divisor and origin. Exact: (value - origin) / divisor where
/// that is whole and all of it stays within 64 bits.
class IntegerScale {
 public:
  /// Values are between `least` and `greatest`, both of the type; the divisor is not zero.
  template <typename T>
  static IntegerScale of(const PackedScale& scale);

  bool is_identity() const { return divisor_ == 1 && origin_ == 0 && !unsigned_; }
  std::uint64_t origin() const { return origin_; }
  std::uint64_t inverse() const { return inverse_; }
  std::uint32_t zeros() const { return zeros_; }
  std::int64_t least() const { return least_; }
  std::int64_t greatest() const { return greatest_; }

 private:
  std::uint64_t divisor_, origin_, inverse_;
  std::uint32_t zeros_;
  std::int64_t least_, greatest_;  // numbers whose values are of the type
  bool unsigned_;
};

/// Numbers of integers.
template <typename T>
void integer_numbers(SimdLevel level, std::span<const T> values, const IntegerScale& scale,
                     VectorNumbers& out);

/// Numbers of floats: form kDecimal with the exponent, or kFloat32.
template <typename T>
void decimal_numbers(SimdLevel level, std::span<const T> values, std::uint32_t exponent, VectorNumbers& out);
template <typename T>
void float32_numbers(SimdLevel level, std::span<const T> values, VectorNumbers& out);

/// Whether a decimal of `exponent` has the value's very bits.
template <typename T>
bool is_decimal(T value, std::uint32_t exponent);

}  // namespace bamquery
