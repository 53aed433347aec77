// Bounds of the parts of packed vectors, by steps of their codes: for CPUs and GPUs.
#pragma once

#include "storage/core/order_key.hpp"
#include "storage/core/packed_vector.hpp"

namespace bamquery {

inline constexpr uint32_t kPackedParts = kPackedVectorRows / kPackedPartRows;
inline constexpr uint32_t kPackedStepBits = 8;  ///< The codes of a vector are divided into 2^8 steps.
inline constexpr uint8_t kPackedLastStep = 255;

/// Whether the parts of a vector have bounds and checksums of their own: where each fills at least 128 bytes,
/// and codes order like values.
BAMQUERY_CORE bool packed_has_parts(const PackedVector& vector) {
  return !vector.is_raw() && vector.bits >= kPackedStepBits;
}

/// How many codes from 0 on have values in ascending order; T is what a value is decoded as. None above is in
/// use but special ones: their values would be too large for the type, and have wrapped.
template <typename T>
BAMQUERY_CORE uint64_t packed_ordered_codes(const PackedVector& vector, const PackedScale& scale) {
  const uint64_t first = vector.first_special();
  if (first == 0) return 0;
  uint64_t most = first - 1;
  if constexpr (static_cast<T>(0.5) != T{0}) {
    if (vector.form() == PackedForm::kFloat32) {
      const uint64_t room = ~static_cast<uint32_t>(vector.base);
      most = most < room ? most : room;
    }
  } else {
    constexpr bool kSigned = static_cast<T>(-1) < T{0};
    constexpr uint64_t kGreatest = ~uint64_t{0} >> (64 - 8 * sizeof(T) + (kSigned ? 1 : 0));
    const T least =
        packed_value<T>(vector.form(), vector.exponent(), scale, static_cast<uint64_t>(vector.base));
    const uint64_t room = order_key(static_cast<T>(kGreatest)) - order_key(least);
    const uint64_t step = vector.form() == PackedForm::kInteger ? scale.divisor : 1;
    const uint64_t codes = step > 1 ? room / step : room;
    most = most < codes ? most : codes;
  }
  return most + 1;
}

/// Where a vector's steps begin and end. An escape belongs to a step, too: that of the ordinary values next
/// to it, the first one below these, the last one above.
class PackedSteps {
 public:
  /// `ordered`: the vector's ordered codes; it has parts.
  BAMQUERY_CORE PackedSteps(const PackedVector& vector, uint64_t ordered)
      : shift_(vector.bits - kPackedStepBits), ordered_(ordered), escapes_(vector.escapes() != 0) {}

  BAMQUERY_CORE uint8_t of_code(uint64_t code) const { return static_cast<uint8_t>(code >> shift_); }

  /// Whether values of the step may be as low as any, or as high.
  BAMQUERY_CORE bool has_no_start(uint8_t step) const { return ordered_ == 0 || (step == 0 && escapes_); }
  BAMQUERY_CORE bool has_no_end(uint8_t step) const {
    return ordered_ == 0 || (step == kPackedLastStep && escapes_);
  }

  /// The codes whose values bound a step that has a start, or an end; they are ordered ones.
  BAMQUERY_CORE uint64_t first_code(uint8_t step) const { return clamped(uint64_t{step} << shift_); }
  BAMQUERY_CORE uint64_t last_code(uint8_t step) const {
    return clamped(((uint64_t{step} + 1) << shift_) - 1);
  }

 private:
  BAMQUERY_CORE uint64_t clamped(uint64_t code) const { return code < ordered_ ? code : ordered_ - 1; }

  uint32_t shift_;
  uint64_t ordered_;
  bool escapes_;
};

/// The steps in which a vector's parts begin and end; `low` is above `high` where a part has no value.
struct PackedPartBounds {
  uint8_t low[kPackedParts];
  uint8_t high[kPackedParts];
};
static_assert(sizeof(PackedPartBounds) == 16);

}  // namespace bamquery
