// Conditions on one column that all must hold, in a form that is the same for every type of fixed width.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

/// A key of 128 bits.
struct WideKey {
  uint64_t low;
  uint64_t high;

  friend BAMQUERY_CORE bool operator<=(const WideKey& a, const WideKey& b) {
    return a.high < b.high || (a.high == b.high && a.low <= b.low);
  }
  friend BAMQUERY_CORE bool operator>=(const WideKey& a, const WideKey& b) { return b <= a; }
};

/// A decimal as files have it: its digits as one signed number.
struct ScanDecimal {
  uint64_t low;
  uint64_t high;
};

/// Booleans as files have them; their keys are 0 and 1.
struct ScanBits {};

template <typename T>
inline constexpr bool kIsBits = false;
template <>
inline constexpr bool kIsBits<ScanBits> = true;

/// Keys from `low` to `high`, both included.
template <typename Key>
struct ScanInterval {
  Key low;
  Key high;
};

/// A value passes if its key is in one of the intervals; if `negated`, in none.
struct ScanTerm {
  uint16_t first;
  uint16_t count;
  uint32_t negated;
};

inline constexpr uint32_t kScanTerms = 8;
inline constexpr uint32_t kScanIntervals = 24;

/// What bamquery.engine.cuda.scan.kernel_tables.predicates packs. Nulls pass if they are wanted, and then
/// nothing else does.
template <typename Stored>
struct ScanPredicate {
  uint32_t terms;
  uint32_t wants_nulls;
  ScanTerm term[kScanTerms];
  ScanInterval<Stored> interval[kScanIntervals];

  /// Bit n: the value with key n passes.
  template <typename Key, uint32_t kCount>
  BAMQUERY_CORE uint32_t passing(const Key (&keys)[kCount]) const {
    static_assert(kCount <= 32);
    uint32_t all = ~0u;
    for (uint32_t t = 0; t < terms; ++t) {
      uint32_t within = 0;
      for (uint32_t i = 0; i < term[t].count; ++i) {
        const Key low = static_cast<Key>(interval[term[t].first + i].low);
        const Key high = static_cast<Key>(interval[term[t].first + i].high);
        BAMQUERY_UNROLL
        for (uint32_t n = 0; n < kCount; ++n) {
          within |= static_cast<uint32_t>(keys[n] >= low && keys[n] <= high) << n;
        }
      }
      all &= term[t].negated != 0 ? ~within : within;
    }
    return all;
  }
};
static_assert(sizeof(ScanPredicate<uint64_t>) == 8 + 8 * kScanTerms + 16 * kScanIntervals);
static_assert(sizeof(ScanPredicate<WideKey>) == 8 + 8 * kScanTerms + 32 * kScanIntervals);

template <bool kWide>
struct OrderKeyOf {
  using Type = uint32_t;
};
template <>
struct OrderKeyOf<true> {
  using Type = uint64_t;
};
/// What a value's key is: 64 bits, or 32 for what fits them; 128 for decimals. Intervals have 64 bits or 128.
template <typename T>
struct OrderKeys {
  using Type = typename OrderKeyOf<(sizeof(T) > 4)>::Type;
  using Stored = uint64_t;
};
template <>
struct OrderKeys<ScanDecimal> {
  using Type = WideKey;
  using Stored = WideKey;
};
template <typename T>
using OrderKey = typename OrderKeys<T>::Type;
template <typename T>
using ScanPredicateOf = ScanPredicate<typename OrderKeys<T>::Stored>;

/// The bits of a value.
template <typename To, typename From>
BAMQUERY_CORE To bits_of(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
#if defined(__CUDACC__)
  memcpy(&bits, &value, sizeof bits);
#else
  __builtin_memcpy(&bits, &value, sizeof bits);
#endif
  return bits;
}

/// A value's key: unsigned, and ordered as SQL orders the values. -0 is 0; NaN equals NaN and is the
/// greatest.
template <typename T>
BAMQUERY_CORE auto order_key(T value) {
  if constexpr (static_cast<T>(0.5) != T{0}) {
    using Key = OrderKey<T>;
    constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
    if (value != value) return static_cast<Key>(~Key{0});
    const Key bits = bits_of<Key>(value + T{0});  // -0 becomes 0
    return (bits & kSign) != 0 ? static_cast<Key>(~bits) : static_cast<Key>(bits | kSign);
  } else {
    using Key = OrderKey<T>;
    constexpr bool kSigned = static_cast<T>(-1) < T{0};
    constexpr Key kSign = kSigned ? Key{1} << (8 * sizeof(Key) - 1) : Key{0};
    return static_cast<Key>(static_cast<Key>(value) ^ kSign);
  }
}

BAMQUERY_CORE WideKey order_key(ScanDecimal value) { return {value.low, value.high ^ (uint64_t{1} << 63)}; }

}  // namespace bamquery
