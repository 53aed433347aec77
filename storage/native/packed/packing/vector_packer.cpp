#include "storage/native/packed/packing/vector_packer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace bamquery {
namespace {

constexpr std::uint32_t kSampled = 32;
constexpr std::uint32_t kTriedExponents = 3;
constexpr std::uint32_t kSearchEvery = 16;  // vectors, where searching did not pay lately
constexpr double kPayingBits = 0.1;         // a row

template <typename T>
std::uint64_t bits_of_value(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Whether some exponent could have the value: neither -0 nor NaN nor infinite.
template <typename T>
bool is_ordinary(T value) {
  return std::isfinite(value) && (value != T{0} || !std::signbit(value));
}

// Where nulls are, a code that is none yet; values keep their order.
void spread_codes(const std::uint64_t* dense, Bits validity, std::uint32_t rows, std::uint64_t null_code,
                  std::uint64_t* out) {
  std::uint32_t next = 0;
  for (std::uint32_t at = 0; at < rows; at += 64) {
    const std::uint32_t block = std::min<std::uint32_t>(64, rows - at);
    const std::uint64_t valid = validity.word(at, static_cast<int>(block));
    for (std::uint32_t i = 0; i < block; ++i) {
      const std::uint64_t set = (valid >> i) & 1;
      out[at + i] = set != 0 ? dense[next] : null_code;
      next += static_cast<std::uint32_t>(set);
    }
  }
}

}  // namespace

template <typename T>
VectorPacker<T>::VectorPacker(const PackedScale& scale, std::span<const std::uint8_t> exponents,
                              bool never_raw)
    : level_(simd_level()),
      scale_(scale),
      never_raw_(never_raw),
      exponents_(exponents.begin(), exponents.end()) {
  for (std::uint8_t k = 0; k <= kPackedMaxExponent; ++k) {
    if (std::ranges::find(exponents_, k) == exponents_.end()) other_exponents_.push_back(k);
  }
  codes_.fill(0);
}

template <typename T>
PackedVector VectorPacker<T>::pack(const T* values, Bits validity, std::uint32_t rows,
                                   std::vector<std::byte>& payload) {
  rows_ = rows;
  validity_ = validity;
  const auto valid = static_cast<std::uint32_t>(count_bits(validity, rows));
  nulls_ = valid < rows;
  values_ = {values, rows};
  if (nulls_) {
    std::uint32_t size = 0;
    for (std::uint32_t at = 0; at < rows; at += 64) {
      const std::uint32_t block = std::min<std::uint32_t>(64, rows - at);
      const std::uint64_t word = validity.word(at, static_cast<int>(block));
      for (std::uint32_t i = 0; i < block; ++i) {
        dense_[size] = values[at + i];
        size += static_cast<std::uint32_t>((word >> i) & 1);
      }
    }
    values_ = {dense_.data(), valid};
  }
  best_ = {};
  best_.form = std::is_floating_point_v<T> ? PackedForm::kDecimal : PackedForm::kInteger;
  best_.window.bits = 0;
  if (valid == 0) return store(payload);
  best_ = {};
  if (!never_raw_) {
    best_.window.payload_bits =
        8 * (packed_bitmap_start(rows, sizeof(T)) + (nulls_ ? kPackedBitmapBytes : 0u));
  }
  if constexpr (std::is_floating_point_v<T>) {
    choose_floating();
  } else {
    const bool scaled = scale_.divisor != 1 || scale_.origin != 0;
    if (consider(PackedForm::kInteger, 0).misfits > 0 && scaled) consider(PackedForm::kUnscaled, 0);
  }
  if (best_.form == PackedForm::kRaw && never_raw_) scatter();
  const double bits = static_cast<double>(best_.window.payload_bits) / rows;
  usual_bits_ = usual_bits_ == 0 ? bits : 0.75 * usual_bits_ + 0.25 * bits;
  return best_.form == PackedForm::kRaw ? store_raw(values, payload) : store(payload);
}

// Decimals of a range no 56 bits hold: the first one is a code, and all others are escapes of 64 bits.
template <typename T>
void VectorPacker<T>::scatter() {
  if constexpr (!std::is_floating_point_v<T>) {
    const bool scaled = scale_.divisor != 1 || scale_.origin != 0;
    integer_numbers(level_, values_, IntegerScale::of<T>(PackedScale{1, 0}), numbers_[0]);
    distinct_.clear();
    for (const T value : values_) distinct_.add(bits_of_value(value));
    const std::uint32_t escapes = distinct_.size() - 1;
    const auto bits = static_cast<std::uint32_t>(std::bit_width(escapes + (nulls_ ? 1u : 0u)));
    const std::size_t bytes = packed_code_bytes(bits, rows_) + sizeof(std::uint64_t) * escapes;
    const CodeWindow window{numbers_[0].numbers[0], 1, bits, 8 * round_up_16(bytes)};
    best_ = {scaled ? PackedForm::kUnscaled : PackedForm::kInteger, 0, window, 0};
  }
}

template <typename T>
void VectorPacker<T>::choose_floating() {
  std::array<T, kSampled> sampled;
  std::uint32_t size = 0;
  const std::size_t step = std::max<std::size_t>(1, values_.size() / kSampled);
  for (std::size_t at = 0; at < values_.size() && size < kSampled; at += step) {
    sampled[size] = values_[at];
    size += is_ordinary(values_[at]) ? 1 : 0;
  }
  const std::span<const T> sample(sampled.data(), size);
  if (!try_exponents(exponents_, sample)) try_exponents(other_exponents_, sample);
  constexpr std::uint32_t kWideDecimal = sizeof(T) == 8 ? 20 : 12;
  if (best_.form != PackedForm::kRaw && best_.window.bits <= kWideDecimal) return;
  if constexpr (sizeof(T) == 8) {
    const auto is_float = [](T value) { return static_cast<T>(static_cast<float>(value)) == value; };
    if (!std::ranges::all_of(sample, is_float)) return;
  }
  consider(PackedForm::kFloat32, 0);
}

// Considers those that have most of the sample, until one has all ordinary values; false if none was.
template <typename T>
bool VectorPacker<T>::try_exponents(std::span<const std::uint8_t> exponents, std::span<const T> sample) {
  if constexpr (std::is_floating_point_v<T>) {
    std::uint32_t tried = 0;
    for (const std::uint8_t exponent : exponents) {
      const std::size_t allowed = sample.size() / 16;
      std::size_t missed = 0;
      for (std::size_t i = 0; i < sample.size() && missed <= allowed; ++i) {
        missed += is_decimal(sample[i], exponent) ? 0 : 1;
      }
      if (missed > allowed) continue;
      const VectorNumbers& numbers = consider(PackedForm::kDecimal, exponent);
      const auto ordinary = [&](std::uint16_t row) { return is_ordinary(values_[row]); };
      const bool all =
          std::none_of(numbers.misfit_rows.begin(), numbers.misfit_rows.begin() + numbers.misfits, ordinary);
      if (all || ++tried == kTriedExponents) return true;
    }
    return tried > 0;
  }
  return false;
}

template <typename T>
const VectorNumbers& VectorPacker<T>::consider(PackedForm form, std::uint32_t exponent) {
  const std::uint32_t slot = best_.form == PackedForm::kRaw ? 0 : 1 - best_.slot;
  VectorNumbers& numbers = numbers_[slot];
  if constexpr (std::is_floating_point_v<T>) {
    if (form == PackedForm::kDecimal) {
      decimal_numbers(level_, values_, exponent, numbers);
    } else {
      float32_numbers(level_, values_, numbers);
    }
  } else {
    const PackedScale scale = form == PackedForm::kInteger ? scale_ : PackedScale{1, 0};
    integer_numbers(level_, values_, IntegerScale::of<T>(scale), numbers);
  }
  const CodeWindow window = find_window(numbers);
  if (window.payload_bits < best_.window.payload_bits) best_ = {form, exponent, window, slot};
  return numbers;
}

template <typename T>
CodeWindow VectorPacker<T>::find_window(const VectorNumbers& numbers) {
  SpecialCounts special{rows_, 0, numbers.misfits, nulls_, has_short_escapes(numbers) ? 4u : 8u};
  if (numbers.misfits > 0) {
    distinct_.clear();
    for (std::uint32_t m = 0; m < numbers.misfits; ++m) {
      distinct_.add(bits_of_value(values_[numbers.misfit_rows[m]]));
    }
    special.escapes = distinct_.size();
    if (numbers.misfits == values_.size()) return escapes_window(special);
  }
  const CodeWindow whole = whole_window(numbers.low, numbers.high, special);
  if (!is_search_due(whole.bits)) {
    ++unsearched_;
    return whole;
  }
  unsearched_ = 0;
  const CodeWindow found = search_.find(level_, {numbers.numbers.data(), values_.size()}, numbers.low,
                                        numbers.high, special, whole);
  const std::uint64_t plain = std::uint64_t{8 * sizeof(T)} * rows_;
  const auto saved = static_cast<double>(std::min(plain, whole.payload_bits)) -
                     static_cast<double>(std::min(plain, found.payload_bits));
  gain_ = 0.75 * gain_ + 0.25 * saved / rows_;
  return found;
}

// Searching takes longer than all the rest, so it is done where it pays, or may.
template <typename T>
bool VectorPacker<T>::is_search_due(std::uint32_t bits) const {
  return bits > 1 &&
         (unsearched_ == kSearchEvery || usual_bits_ == 0 || gain_ >= kPayingBits || bits > usual_bits_ + 2);
}

// Whether numbers say all, and are so near to each other that the distance from any base takes 4 bytes.
template <typename T>
bool VectorPacker<T>::has_short_escapes(const VectorNumbers& numbers) {
  const std::uint64_t range =
      static_cast<std::uint64_t>(numbers.high) - static_cast<std::uint64_t>(numbers.low);
  return numbers.misfits == 0 && range <= std::numeric_limits<std::int32_t>::max();
}

// Codes of values_, and how many escapes there are; they are in distinct_ then, ascending: bits of values, or
// distances of numbers from the base, of which those above come first, next to the ordinary codes.
template <typename T>
std::uint32_t VectorPacker<T>::assign_codes(std::uint64_t& first) {
  const VectorNumbers& numbers = numbers_[best_.slot];
  const CodeWindow& window = best_.window;
  const auto base = static_cast<std::uint64_t>(window.base);
  const std::size_t count = values_.size();
  for (std::size_t i = 0; i < count; ++i) {
    codes_[i] = static_cast<std::uint64_t>(numbers.numbers[i]) - base;
  }
  first = (std::uint64_t{1} << window.bits) - (nulls_ ? 1 : 0);
  const std::uint64_t range =
      static_cast<std::uint64_t>(numbers.high) - static_cast<std::uint64_t>(numbers.low);
  if (numbers.misfits == 0 && window.width > range) return 0;

  for (std::uint32_t m = 0; m < numbers.misfits; ++m) codes_[numbers.misfit_rows[m]] = ~std::uint64_t{0};
  std::array<std::uint16_t, kPackedVectorRows + 1> rows;
  std::uint32_t special = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    rows[special] = static_cast<std::uint16_t>(i);
    special += codes_[i] >= window.width ? 1 : 0;
  }
  distinct_.clear();
  const bool as_numbers = has_short_escapes(numbers);
  std::array<std::uint16_t, kPackedVectorRows> places, ranks;
  for (std::uint32_t s = 0; s < special; ++s) {
    const std::uint64_t bits = as_numbers ? codes_[rows[s]] : bits_of_value(values_[rows[s]]);
    places[s] = static_cast<std::uint16_t>(distinct_.add(bits));
  }
  distinct_.sort(ranks);
  first -= distinct_.size();
  for (std::uint32_t s = 0; s < special; ++s) codes_[rows[s]] = first + ranks[places[s]];
  return distinct_.size();
}

template <typename T>
PackedVector VectorPacker<T>::store(std::vector<std::byte>& payload) {
  const std::uint32_t bits = best_.window.bits;
  PackedVector vector{};
  vector.bits = static_cast<std::uint8_t>(bits);
  vector.exponent_form =
      static_cast<std::uint8_t>(static_cast<std::uint32_t>(best_.form) << 5 | best_.exponent);
  std::uint64_t first = 0;
  std::uint32_t escapes = 0;
  if (!values_.empty()) {
    vector.base = best_.window.base;
    escapes = assign_codes(first);
  }
  const bool as_numbers = escapes > 0 && has_short_escapes(numbers_[best_.slot]);
  vector.escapes_nulls =
      static_cast<std::uint16_t>(escapes | (as_numbers ? 1u << 14 : 0u) | (nulls_ ? 1u << 15 : 0u));
  const std::size_t start = payload.size();
  if (bits == 0 && escapes == 0) return vector;
  const std::size_t size = packed_bytes(vector, rows_, sizeof(T));
  payload.resize(start + size + sizeof(std::uint64_t));  // what pack_codes may overwrite
  if (bits > 0) {
    const std::uint64_t* codes = codes_.data();
    if (nulls_) {
      spread_codes(codes, validity_, rows_, vector.null_code(), spread_.data());
      codes = spread_.data();
    }
    pack_codes(level_, codes, bits, rows_, payload.data() + start);
  }
  std::byte* at = payload.data() + start + packed_code_bytes(bits, rows_);
  std::memset(at, 0, static_cast<std::size_t>(payload.data() + payload.size() - at));
  const std::uint32_t each = vector.escape_bytes();
  for (std::uint32_t e = 0; e < escapes; ++e, at += each) {
    const std::uint64_t value = distinct_.value(e);
    std::memcpy(at, &value, each);  // the least significant bytes come first
  }
  payload.resize(start + size);
  return vector;
}

template <typename T>
PackedVector VectorPacker<T>::store_raw(const T* values, std::vector<std::byte>& payload) const {
  PackedVector vector{};
  vector.bits = kPackedRawBits;
  vector.exponent_form = static_cast<std::uint8_t>(static_cast<std::uint32_t>(PackedForm::kRaw) << 5);
  vector.escapes_nulls = static_cast<std::uint16_t>(nulls_ ? 1u << 15 : 0u);
  const std::size_t start = payload.size();
  payload.resize(start + packed_bytes(vector, rows_, sizeof(T)));
  std::memcpy(payload.data() + start, values, rows_ * sizeof(T));
  if (nulls_) {
    std::byte* bitmap = payload.data() + start + packed_bitmap_start(rows_, sizeof(T));
    copy_bits(validity_, rows_, reinterpret_cast<std::uint8_t*>(bitmap), 0);
  }
  return vector;
}

template class VectorPacker<std::int8_t>;
template class VectorPacker<std::int16_t>;
template class VectorPacker<std::int32_t>;
template class VectorPacker<std::int64_t>;
template class VectorPacker<std::uint8_t>;
template class VectorPacker<std::uint16_t>;
template class VectorPacker<std::uint32_t>;
template class VectorPacker<std::uint64_t>;
template class VectorPacker<float>;
template class VectorPacker<double>;

}  // namespace bamquery
