#include "storage/native/packed/compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

#include "storage/native/bitmap.hpp"
#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

// Codes from `low` to `high`, both included.
struct CodeInterval {
  std::uint64_t low;
  std::uint64_t high;
};

// Codes of a vector that pass, ascending and not even adjacent.
class PassingCodes {
 public:
  void clear() { intervals_.clear(); }
  void add(std::uint64_t low, std::uint64_t high) {
    if (!intervals_.empty() && intervals_.back().high + 1 == low) {
      intervals_.back().high = high;
    } else {
      intervals_.push_back({low, high});
    }
  }
  std::span<const CodeInterval> intervals() const { return intervals_; }

 private:
  std::vector<CodeInterval> intervals_;
};

template <typename T>
void find_codes(PackedPredicate& predicate, const Payload& payload, const PackedVector& vector,
                PassingCodes& out) {
  out.clear();
  const std::uint64_t first = vector.first_special();
  if (predicate.wants_nulls()) {
    if (vector.has_nulls()) out.add(vector.null_code(), vector.null_code());
    return;
  }
  for (const NumberInterval& numbers : predicate.numbers(vector.form(), vector.exponent())) {
    if (numbers.high < vector.base || first == 0) continue;
    const auto base = static_cast<std::uint64_t>(vector.base);
    const std::uint64_t low = numbers.low <= vector.base ? 0 : static_cast<std::uint64_t>(numbers.low) - base;
    const std::uint64_t high = std::min(static_cast<std::uint64_t>(numbers.high) - base, first - 1);
    if (low <= high) out.add(low, high);
  }
  for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
    const WideOrderKey key = wide_key(predicate.kind(), packed_escape<T>(payload.escape(e)));
    if (predicate.passes(key)) out.add(first + e, first + e);
  }
}

template <typename Code>
void compare_codes(SimdLevel level, const Payload& payload, std::uint32_t bits, std::uint32_t rows,
                   std::span<const CodeInterval> passing, VectorMask& mask) {
  CodeBuffer<Code> codes;
  unpack_codes(level, payload.bytes(), bits, rows, codes);
  codes_within(level, codes, rows, passing[0].low, passing[0].high, mask.data());
  for (const CodeInterval& next : passing.subspan(1)) {
    VectorMask more;
    codes_within(level, codes, rows, next.low, next.high, more.data());
    for (std::uint32_t word = 0; 64 * word < rows; ++word) mask[word] |= more[word];
  }
}

// order_key without choices, of which compilers make no vector instructions.
template <typename T>
[[gnu::always_inline]] inline void find_keys(const T* values, std::uint32_t rows, OrderKey<T>* keys) {
  using Key = OrderKey<T>;
  for (std::uint32_t row = 0; row < rows; ++row) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int kLast = 8 * sizeof(Key) - 1;
      const Key bits = std::bit_cast<Key>(values[row] + T{0});
      const Key negative = Key{0} - (bits >> kLast);
      const Key nan = Key{0} - Key{values[row] != values[row]};
      keys[row] = (bits ^ (negative | Key{1} << kLast)) | nan;
    } else {
      keys[row] = order_key(values[row]);
    }
  }
}

#if defined(__x86_64__)
template <typename T>
BAMQUERY_AVX2 void find_keys_avx2(const T* values, std::uint32_t rows, OrderKey<T>* keys) {
  find_keys(values, rows, keys);
}
#endif

template <typename T>
void find_keys(SimdLevel level, const T* values, std::uint32_t rows, OrderKey<T>* keys) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) return find_keys_avx2(values, rows, keys);
#else
  static_cast<void>(level);
#endif
  find_keys(values, rows, keys);
}

template <typename T>
void compare_raw(SimdLevel level, const PackedPredicate& predicate, const Payload& payload,
                 const PackedVector& vector, std::uint32_t rows, VectorMask& mask) {
  std::array<T, kPackedVectorRows> values;
  VectorMask valid;
  decode_vector(level, payload, vector, rows, PackedScale{1, 0}, values.data(), valid);
  mask = first_rows(rows);
  if (predicate.wants_nulls()) {
    for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= ~valid[word];
    return;
  }
  CodeBuffer<OrderKey<T>> keys;
  find_keys(level, values.data(), rows, keys.codes);
  mask = {};
  for (const KeyInterval& next : predicate.keys()) {
    VectorMask more;
    codes_within(level, keys, rows, static_cast<std::uint64_t>(next.low),
                 static_cast<std::uint64_t>(next.high), more.data());
    for (std::uint32_t word = 0; 64 * word < rows; ++word) mask[word] |= more[word];
  }
  for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= valid[word];
}

template <typename T>
void compare_vector(SimdLevel level, PackedPredicate& predicate, const Payload& payload,
                    const PackedVector& vector, std::uint32_t rows, PassingCodes& passing, VectorMask& mask) {
  if (vector.is_raw()) return compare_raw<T>(level, predicate, payload, vector, rows, mask);
  find_codes<T>(predicate, payload, vector, passing);
  const auto intervals = passing.intervals();
  if (intervals.empty()) {
    mask = {};
  } else if (intervals[0].low == 0 && intervals[0].high == packed_mask(vector.bits)) {
    mask.fill(~std::uint64_t{0});
  } else if (vector.bits <= kNarrowBits) {
    compare_codes<std::uint32_t>(level, payload, vector.bits, rows, intervals, mask);
  } else {
    compare_codes<std::uint64_t>(level, payload, vector.bits, rows, intervals, mask);
  }
}

}  // namespace

std::int64_t compare_packed(PackedPredicate& predicate, std::span<const std::byte> payload,
                            std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                            std::span<const std::int64_t> rows, std::uint8_t* mask) {
  const SimdLevel level = simd_level();
  const PackedKind kind = packed_kind(predicate.kind());
  return with_packed_type(predicate.kind(), [&]<typename T>(T) {
    PassingCodes passing;
    std::int64_t row = 0;
    std::int64_t count = 0;
    for (std::size_t v = 0; v < vectors.size(); ++v) {
      const Payload found(payload, starts[v], vectors[v], rows[v], kind, static_cast<std::int64_t>(v));
      VectorMask bits;
      compare_vector<T>(level, predicate, found, vectors[v], static_cast<std::uint32_t>(rows[v]), passing,
                        bits);
      count += copy_bits({reinterpret_cast<const std::uint8_t*>(bits.data()), 0}, rows[v], mask, row);
      row += rows[v];
    }
    return count;
  });
}

}  // namespace bamquery
