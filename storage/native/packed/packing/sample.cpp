#include "storage/native/packed/packing/sample.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>

#include "storage/native/packed/packing/vector_packer.hpp"
#include "storage/native/packed/packing/vector_values.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kPackedVectors = 64;
constexpr std::size_t kExponents = 3;

// The greatest divisor of all differences, and what is left of each value.
template <typename T>
class CommonScale {
 public:
  void add(T value) {
    if (!any_) first_ = value;
    any_ = true;
    greatest_ = std::max(greatest_, value);
    if (divisor_ == 1) return;
    const auto a = static_cast<std::uint64_t>(value), b = static_cast<std::uint64_t>(first_);
    const std::uint64_t difference = value < first_ ? b - a : a - b;
    if (divisor_ == 0 || difference % divisor_ != 0) divisor_ = std::gcd(divisor_, difference);
  }

  PackedScale scale() const {
    if (divisor_ > 1) {
      // The least origin that is not negative.
      const std::uint64_t size =
          first_ < T{0} ? 0 - static_cast<std::uint64_t>(first_) : static_cast<std::uint64_t>(first_);
      const std::uint64_t rest = size % divisor_;
      return {divisor_, first_ < T{0} && rest != 0 ? divisor_ - rest : rest};
    }
    // Numbers are signed: so that all unsigned values have one.
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
    const bool large = std::is_same_v<T, std::uint64_t> && static_cast<std::uint64_t>(greatest_) >= kHalf;
    return {1, large ? kHalf : 0};
  }

 private:
  bool any_ = false;
  T first_{};
  T greatest_ = std::numeric_limits<T>::min();
  std::uint64_t divisor_ = 0;
};

// Counts distinct numbers by the bits that stay clear: linear counting (Whang, Vander-Zanden, Taylor, TODS
// 15(2) 1990).
class DistinctCount {
 public:
  void add(std::uint64_t bits) {
    const std::uint64_t mixed = (bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15;
    const std::uint64_t slot = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9 >> (64 - kBits);
    words_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  double estimate() const {
    std::int64_t clear = 0;
    for (const std::uint64_t word : words_) clear += 64 - std::popcount(word);
    constexpr double kSlots = std::uint64_t{1} << kBits;
    return kSlots * std::log(kSlots / static_cast<double>(std::max<std::int64_t>(clear, 1)));
  }

 private:
  static constexpr std::uint32_t kBits = 17;
  std::array<std::uint64_t, (std::size_t{1} << kBits) / 64> words_{};
};

std::vector<std::uint8_t> most_frequent(const std::array<std::int64_t, kPackedMaxExponent + 1>& counts) {
  std::vector<std::uint8_t> exponents;
  for (std::uint8_t k = 0; k < counts.size(); ++k) {
    if (counts[k] > 0) exponents.push_back(k);
  }
  std::ranges::sort(exponents, [&](std::uint8_t a, std::uint8_t b) { return counts[a] > counts[b]; });
  exponents.resize(std::min(exponents.size(), kExponents));
  std::ranges::sort(exponents);
  return exponents;
}

}  // namespace

PackingSample sample_packing(ValueKind kind, const std::byte* values, const std::uint8_t* validity,
                             std::int64_t rows) {
  PackingSample sample;
  const std::int64_t vectors = (rows + kVectorRows - 1) / kVectorRows;
  const auto rows_of = [&](std::int64_t first) {
    return static_cast<std::uint32_t>(std::min(kVectorRows, rows - first));
  };
  with_packed_type(kind, [&]<typename T>(T) {
    VectorRoom<T> room;
    const auto distinct = std::make_unique<DistinctCount>();
    std::conditional_t<std::is_floating_point_v<T>, CommonScale<std::int8_t>, CommonScale<T>> common;
    for (std::int64_t first = 0; first < rows; first += kVectorRows) {
      const T* found = vector_values(kind, values, first, rows_of(first), room);
      sample.fits = found != nullptr;
      if (!sample.fits) return;
      const Bits valid{validity, first};
      for (std::uint32_t row = 0; row < rows_of(first); ++row) {
        if (!valid[row]) continue;
        std::uint64_t bits = 0;
        std::memcpy(&bits, found + row, sizeof(T));
        distinct->add(bits);
        if constexpr (!std::is_floating_point_v<T>) common.add(found[row]);
      }
    }
    sample.distinct = distinct->estimate();
    if (!std::is_floating_point_v<T> && kind != ValueKind::kBool) sample.scale = common.scale();

    const auto packer = std::make_unique<VectorPacker<T>>(sample.scale, std::span<const std::uint8_t>{},
                                                          packed_kind(kind).type == PackedType::kNeverRaw);
    std::array<std::int64_t, kPackedMaxExponent + 1> exponents{};
    std::vector<std::byte> payload;
    std::int64_t packed_rows = 0;
    std::size_t bytes = 0;
    const std::int64_t step = std::max<std::int64_t>(1, vectors / kPackedVectors) * kVectorRows;
    for (std::int64_t first = 0; first < rows; first += step) {
      const T* found = vector_values(kind, values, first, rows_of(first), room);
      const PackedVector vector = packer->pack(found, Bits{validity, first}, rows_of(first), payload);
      if (vector.form() == PackedForm::kDecimal && vector.bits > 0)
        exponents[vector.exponent()] += rows_of(first);
      packed_rows += rows_of(first);
      bytes += payload.size() + sizeof(PackedVector);
      payload.clear();
    }
    sample.exponents = most_frequent(exponents);
    if (packed_rows > 0) sample.bits = 8 * static_cast<double>(bytes) / static_cast<double>(packed_rows);
  });
  return sample;
}

}  // namespace bamquery
