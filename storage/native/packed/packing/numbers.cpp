#include "storage/native/packed/packing/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "storage/native/packed/decode_values.hpp"

namespace bamquery {
namespace {

__extension__ typedef __int128 Int128;

// Adding 1.5 * 2^52 rounds to a whole number, which then stands in the mantissa. Half the range of that, so
// that numbers decode exactly on all paths.
constexpr double kRound = 0x1.8p52;
constexpr double kMostNumber = 0x1p50;

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Loops of one level each. They store numbers and return how many values have none; which, a second pass
// says.
struct IntegerLoop {
  const IntegerScale& scale;

  template <typename T>
  [[gnu::always_inline]] std::int64_t number(T value, bool& fits) const {
    const std::uint64_t multiple = (static_cast<std::uint64_t>(value) - scale.origin()) * scale.inverse();
    const std::int64_t number = static_cast<std::int64_t>(multiple) >> scale.zeros();
    const bool whole = (multiple & ((std::uint64_t{1} << scale.zeros()) - 1)) == 0;
    fits = whole & (number >= scale.least()) & (number <= scale.greatest());
    return number;
  }
};

template <bool kFma>
struct DecimalLoop {
  std::uint32_t exponent;

  template <typename T>
  [[gnu::always_inline]] std::int64_t number(T value, bool& fits) const {
    const double scaled = static_cast<double>(value) * kPowersOfTen[exponent];
    const double rounded = scaled + kRound;
    const auto number = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(rounded) -
                                                  std::bit_cast<std::uint64_t>(kRound));
    const T again = static_cast<T>(quotient<kFma>(rounded - kRound, exponent));
    fits = (std::bit_cast<BitsOf<T>>(again) == std::bit_cast<BitsOf<T>>(value)) &
           (std::fabs(scaled) < kMostNumber);
    return number;
  }
};

struct Float32Loop {
  template <typename T>
  [[gnu::always_inline]] std::int64_t number(T value, bool& fits) const {
    const auto narrow = static_cast<float>(value);
    const auto bits = std::bit_cast<std::uint32_t>(narrow);
    // Not NaN: conversions make a signalling one quiet.
    fits = (std::bit_cast<BitsOf<T>>(static_cast<T>(narrow)) == std::bit_cast<BitsOf<T>>(value)) &
           (value == value);
    return static_cast<std::int64_t>(bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u));
  }
};

template <typename Loop, typename T>
[[gnu::always_inline]] inline std::uint32_t run(const T* values, std::size_t count, const Loop& loop,
                                                std::int64_t* numbers) {
  std::uint64_t misfits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bool fits;
    numbers[i] = loop.number(values[i], fits);
    misfits += !fits;
  }
  return static_cast<std::uint32_t>(misfits);
}

[[gnu::always_inline]] inline void find_range(const std::int64_t* numbers, std::size_t count,
                                              std::int64_t& low, std::int64_t& high) {
  // Four at once, so that no comparison waits for the one before.
  const std::size_t quarter = count / 4;
  std::int64_t least0 = numbers[0], least1 = least0, least2 = least0, least3 = least0;
  std::int64_t most0 = numbers[0], most1 = most0, most2 = most0, most3 = most0;
  for (std::size_t i = 0; i < quarter; ++i) {
    const std::int64_t a = numbers[i], b = numbers[quarter + i];
    const std::int64_t c = numbers[2 * quarter + i], d = numbers[3 * quarter + i];
    least0 = a < least0 ? a : least0;
    least1 = b < least1 ? b : least1;
    least2 = c < least2 ? c : least2;
    least3 = d < least3 ? d : least3;
    most0 = a > most0 ? a : most0;
    most1 = b > most1 ? b : most1;
    most2 = c > most2 ? c : most2;
    most3 = d > most3 ? d : most3;
  }
  low = std::min(std::min(least0, least1), std::min(least2, least3));
  high = std::max(std::max(most0, most1), std::max(most2, most3));
  for (std::size_t i = 4 * quarter; i < count; ++i) {
    low = std::min(low, numbers[i]);
    high = std::max(high, numbers[i]);
  }
}

#if defined(__x86_64__)
template <typename Loop, typename T>
BAMQUERY_AVX2 std::uint32_t run_avx2(const T* values, std::size_t count, const Loop& loop,
                                     std::int64_t* numbers) {
  return run(values, count, loop, numbers);
}
template <typename Loop, typename T>
BAMQUERY_AVX512 std::uint32_t run_avx512(const T* values, std::size_t count, const Loop& loop,
                                         std::int64_t* numbers) {
  return run(values, count, loop, numbers);
}
BAMQUERY_AVX2 void find_range_avx2(const std::int64_t* numbers, std::size_t count, std::int64_t& low,
                                   std::int64_t& high) {
  find_range(numbers, count, low, high);
}
BAMQUERY_AVX512 void find_range_avx512(const std::int64_t* numbers, std::size_t count, std::int64_t& low,
                                       std::int64_t& high) {
  find_range(numbers, count, low, high);
}
#endif

void find_range(SimdLevel level, const std::int64_t* numbers, std::size_t count, std::int64_t& low,
                std::int64_t& high) {
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return find_range_avx512(numbers, count, low, high);
  if (level == SimdLevel::kAvx2) return find_range_avx2(numbers, count, low, high);
#else
  static_cast<void>(level);
#endif
  find_range(numbers, count, low, high);
}

template <typename Loop, typename T>
std::uint32_t run(SimdLevel level, const T* values, std::size_t count, const Loop& loop,
                  std::int64_t* numbers) {
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return run_avx512(values, count, loop, numbers);
  if (level == SimdLevel::kAvx2) return run_avx2(values, count, loop, numbers);
#else
  static_cast<void>(level);
#endif
  return run(values, count, loop, numbers);
}

// Which values have no number. These get that of some other value, so that they widen no range.
template <typename Loop, typename T>
void find_misfits(std::span<const T> values, const Loop& loop, VectorNumbers& out) {
  out.misfits = 0;
  std::int64_t any = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool fits;
    const std::int64_t number = loop.number(values[i], fits);
    out.misfit_rows[out.misfits] = static_cast<std::uint16_t>(i);
    out.misfits += fits ? 0 : 1;
    if (fits) any = number;
  }
  for (std::uint32_t m = 0; m < out.misfits; ++m) out.numbers[out.misfit_rows[m]] = any;
}

template <typename Fast, typename Loop, typename T>
void find_numbers(SimdLevel level, std::span<const T> values, const Fast& fast, const Loop& loop,
                  VectorNumbers& out) {
  out.misfits = run(level, values.data(), values.size(), fast, out.numbers.data());
  if (out.misfits > 0) find_misfits(values, loop, out);
  find_range(level, out.numbers.data(), values.size(), out.low, out.high);
}

}  // namespace

template <typename T>
IntegerScale IntegerScale::of(const PackedScale& scale) {
  IntegerScale made;
  made.divisor_ = scale.divisor;
  made.origin_ = scale.origin;
  made.unsigned_ = std::is_same_v<T, std::uint64_t>;
  made.zeros_ = static_cast<std::uint32_t>(std::countr_zero(scale.divisor));
  const std::uint64_t odd = scale.divisor >> made.zeros_;
  made.inverse_ = odd;  // right in its lowest 3 bits; each step doubles how many
  for (int i = 0; i < 5; ++i) made.inverse_ *= 2 - odd * made.inverse_;
  const Int128 origin =
      std::is_signed_v<T> ? Int128{static_cast<std::int64_t>(scale.origin)} : Int128{scale.origin};
  const auto divisor = static_cast<Int128>(scale.divisor);
  const auto down = [&](Int128 a) { return a >= 0 ? a / divisor : -((divisor - 1 - a) / divisor); };
  const Int128 least = -down(-(Int128{std::numeric_limits<T>::min()} - origin));
  const Int128 greatest = down(Int128{std::numeric_limits<T>::max()} - origin);
  const auto clamped = [](Int128 a) {
    constexpr Int128 kLeast = std::numeric_limits<std::int64_t>::min();
    constexpr Int128 kGreatest = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(a < kLeast ? kLeast : a > kGreatest ? kGreatest : a);
  };
  made.least_ = clamped(least);
  made.greatest_ = clamped(greatest);
  return made;
}

template <typename T>
void integer_numbers(SimdLevel level, std::span<const T> values, const IntegerScale& scale,
                     VectorNumbers& out) {
  if (!scale.is_identity()) {
    const IntegerLoop loop{scale};
    return find_numbers(level, values, loop, loop, out);
  }
  out.misfits = 0;
  for (std::size_t i = 0; i < values.size(); ++i) out.numbers[i] = static_cast<std::int64_t>(values[i]);
  find_range(level, out.numbers.data(), values.size(), out.low, out.high);
}

template <typename T>
void decimal_numbers(SimdLevel level, std::span<const T> values, std::uint32_t exponent, VectorNumbers& out) {
  if (level == SimdLevel::kBaseline) {
    find_numbers(level, values, DecimalLoop<false>{exponent}, DecimalLoop<false>{exponent}, out);
  } else {
    find_numbers(level, values, DecimalLoop<true>{exponent}, DecimalLoop<false>{exponent}, out);
  }
}

template <typename T>
void float32_numbers(SimdLevel level, std::span<const T> values, VectorNumbers& out) {
  find_numbers(level, values, Float32Loop{}, Float32Loop{}, out);
}

template <typename T>
bool is_decimal(T value, std::uint32_t exponent) {
  bool fits;
  DecimalLoop<false>{exponent}.number(value, fits);
  return fits;
}

#define BAMQUERY_INTEGERS(T)                                     \
  template IntegerScale IntegerScale::of<T>(const PackedScale&); \
  template void integer_numbers<T>(SimdLevel, std::span<const T>, const IntegerScale&, VectorNumbers&)
BAMQUERY_INTEGERS(std::int8_t);
BAMQUERY_INTEGERS(std::int16_t);
BAMQUERY_INTEGERS(std::int32_t);
BAMQUERY_INTEGERS(std::int64_t);
BAMQUERY_INTEGERS(std::uint8_t);
BAMQUERY_INTEGERS(std::uint16_t);
BAMQUERY_INTEGERS(std::uint32_t);
BAMQUERY_INTEGERS(std::uint64_t);
#undef BAMQUERY_INTEGERS

#define BAMQUERY_FLOATS(T)                                                                        \
  template void decimal_numbers<T>(SimdLevel, std::span<const T>, std::uint32_t, VectorNumbers&); \
  template void float32_numbers<T>(SimdLevel, std::span<const T>, VectorNumbers&);                \
  template bool is_decimal<T>(T, std::uint32_t)
BAMQUERY_FLOATS(float);
BAMQUERY_FLOATS(double);
#undef BAMQUERY_FLOATS

}  // namespace bamquery
