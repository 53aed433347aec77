#include "storage/native/packed/selecting/compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

// Codes from `low` to `high`, both included.
struct CodeInterval {
  std::uint64_t low;
  std::uint64_t high;
};

// Codes of a vector that pass, ascending and not even adjacent: ordinary ones, then special ones.
class PassingCodes {
 public:
  void clear() { intervals_.clear(); }
  void end_ordinary() { ordinary_ = intervals_.size(); }
  void add(std::uint64_t low, std::uint64_t high) {
    if (!intervals_.empty() && intervals_.back().high + 1 == low) {
      intervals_.back().high = high;
    } else {
      intervals_.push_back({low, high});
    }
  }
  std::span<const CodeInterval> intervals() const { return intervals_; }
  // How many of the intervals begin with an ordinary code; the last of them may reach on.
  std::size_t ordinary() const { return ordinary_; }

 private:
  std::vector<CodeInterval> intervals_;
  std::size_t ordinary_ = 0;
};

// Escapes that are numbers; mostly those of one interval pass.
void add_short_escapes(std::span<const NumberInterval> numbers, const Payload& payload,
                       const PackedVector& vector, PassingCodes& passing) {
  if (numbers.empty()) return;
  const std::uint64_t first = vector.first_special();
  const auto number = [&](std::uint32_t e) {
    const auto above = static_cast<std::int32_t>(static_cast<std::uint32_t>(payload.escape(e)));
    return static_cast<std::uint64_t>(vector.base) + static_cast<std::uint64_t>(std::int64_t{above});
  };
  if (numbers.size() == 1) {
    const auto low = static_cast<std::uint64_t>(numbers.front().low);
    const std::uint64_t span = static_cast<std::uint64_t>(numbers.front().high) - low;
    for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
      const std::uint32_t begin = e;
      while (e < vector.escapes() && number(e) - low <= span) ++e;
      if (e > begin) passing.add(first + begin, first + e - 1);
    }
    return;
  }
  for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
    const auto n = static_cast<std::int64_t>(number(e));
    const auto found = std::ranges::lower_bound(numbers, n, {}, &NumberInterval::high);
    if (found != numbers.end() && found->low <= n) passing.add(first + e, first + e);
  }
}

// Numbers that pass as codes of the vector; `passing` gets those that are special, too.
template <typename T>
void find_codes(PackedPredicate& predicate, const Payload& payload, const PackedVector& vector,
                PassingCodes& passing) {
  passing.clear();
  const std::uint64_t first = vector.first_special();
  const auto base = static_cast<std::uint64_t>(vector.base);
  const auto numbers = predicate.numbers(vector);
  // Where numbers are many intervals, a vector mostly holds a few of them.
  auto next = std::ranges::lower_bound(numbers, vector.base, {}, &NumberInterval::high);
  for (; next != numbers.end() && first > 0; ++next) {
    const std::uint64_t low = next->low <= vector.base ? 0 : static_cast<std::uint64_t>(next->low) - base;
    if (low >= first) break;
    passing.add(low, std::min(static_cast<std::uint64_t>(next->high) - base, first - 1));
  }
  passing.end_ordinary();
  if (vector.has_short_escapes()) {
    add_short_escapes(numbers, payload, vector, passing);
  } else {
    for (std::uint32_t e = 0; e < vector.escapes(); ++e) {
      const WideOrderKey key = wide_key(predicate.kind(), value_of_bits<T>(payload.escape(e)));
      if (predicate.passes(key)) passing.add(first + e, first + e);
    }
  }
  if (predicate.nulls_pass() && vector.has_nulls()) passing.add(vector.null_code(), vector.null_code());
}

// How codes of a vector are compared with an interval, however wide they are.
class CodesWithin {
 public:
  CodesWithin(SimdLevel level, const Payload& payload, const PackedVector& vector, std::uint32_t rows)
      : level_(level), payload_(payload), bits_(vector.bits), rows_(rows) {
    if (bits_ > kNarrowBits) unpack_codes(level, payload.bytes(), bits_, rows, codes_);
  }
  CodesWithin(const CodesWithin&) = delete;
  CodesWithin& operator=(const CodesWithin&) = delete;

  void find(std::uint64_t low, std::uint64_t high, VectorMask& mask) const {
    if (bits_ > kNarrowBits) {
      codes_within(level_, codes_, rows_, low, high, mask.data());
    } else {
      packed_within(level_, payload_.bytes(), bits_, rows_, low, high, mask.data());
    }
  }
  // Codes in one of the intervals; `negated`: in none.
  void find_any(std::span<const CodeInterval> intervals, VectorMask& mask) const {
    find(intervals[0].low, intervals[0].high, mask);
    for (const CodeInterval& next : intervals.subspan(1)) {
      VectorMask more;
      find(next.low, next.high, more);
      for (std::uint32_t word = 0; 64 * word < rows_; ++word) mask[word] |= more[word];
    }
  }

 private:
  SimdLevel level_;
  const Payload& payload_;
  std::uint32_t bits_, rows_;
  CodeBuffer<std::uint64_t> codes_;  // of wide codes
};

// From so many intervals on it takes less to look each row's number up.
constexpr std::size_t kManyIntervals = 8;

// Rows whose numbers have a flag.
void look_up(SimdLevel level, const NumberFlags& flags, const Payload& payload, const PackedVector& vector,
             std::uint32_t rows, VectorMask& mask) {
  CodeBuffer<std::uint32_t> codes;
  unpack_codes(level, payload.bytes(), vector.bits, rows, codes);
  const std::uint64_t first = vector.first_special();
  const std::uint64_t none = flags.bytes.size() - 1;
  const std::uint64_t above = static_cast<std::uint64_t>(vector.base) - static_cast<std::uint64_t>(flags.low);
  for (std::uint32_t word = 0; 64 * word < rows; ++word) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < 64; ++i) {
      const std::uint64_t code = codes.codes[64 * word + i];
      const std::uint64_t place = code < first ? std::min(code + above, none) : none;
      found |= std::uint64_t{flags.bytes[place]} << i;
    }
    mask[word] = found;
  }
}

void compare_codes(SimdLevel level, PackedPredicate& predicate, const Payload& payload,
                   const PackedVector& vector, std::uint32_t rows, PassingCodes& passing, VectorMask& mask) {
  const auto intervals = passing.intervals();
  const std::size_t ordinary = passing.ordinary();
  if (ordinary >= kManyIntervals && vector.bits <= kNarrowBits) {
    if (const NumberFlags* flags = predicate.flags(vector)) {
      look_up(level, *flags, payload, vector, rows, mask);
      const CodesWithin codes(level, payload, vector, rows);
      const std::uint64_t first = vector.first_special();
      for (const CodeInterval& next : intervals.subspan(ordinary - 1)) {
        if (next.high < first) continue;
        VectorMask special;
        codes.find(std::max(next.low, first), next.high, special);
        for (std::uint32_t word = 0; 64 * word < rows; ++word) mask[word] |= special[word];
      }
      return;
    }
  }
  const CodesWithin codes(level, payload, vector, rows);
  // All but what lies between two intervals is the complement of one.
  if (intervals.size() == 2 && intervals[0].low == 0 && intervals[1].high == packed_mask(vector.bits)) {
    codes.find(intervals[0].high + 1, intervals[1].low - 1, mask);
    for (std::uint64_t& word : mask) word = ~word;
  } else {
    codes.find_any(intervals, mask);
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
  CodeBuffer<OrderKey<T>> keys;
  find_keys(level, values.data(), rows, keys.codes);
  mask = {};
  for (const KeyInterval& next : predicate.keys()) {
    VectorMask more;
    codes_within(level, keys, rows, static_cast<std::uint64_t>(next.low),
                 static_cast<std::uint64_t>(next.high), more.data());
    for (std::uint32_t word = 0; 64 * word < rows; ++word) mask[word] |= more[word];
  }
  const std::uint64_t nulls = predicate.nulls_pass() ? ~std::uint64_t{0} : 0;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    mask[word] = (mask[word] & valid[word]) | (nulls & ~valid[word]);
  }
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
  } else {
    compare_codes(level, predicate, payload, vector, rows, passing, mask);
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
      count += store_mask(level, bits, static_cast<std::uint32_t>(rows[v]), mask, row);
      row += rows[v];
    }
    return count;
  });
}

}  // namespace bamquery
