// Conditions on one column that all must hold, in a form that is the same for every type of fixed width.
#pragma once

#include "driver/core/platform.hpp"
#include "storage/core/order_key.hpp"

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

template <>
struct OrderKeys<ScanDecimal> {
  using Type = WideKey;
  using Stored = WideKey;
};
template <typename T>
using ScanPredicateOf = ScanPredicate<typename OrderKeys<T>::Stored>;

BAMQUERY_CORE WideKey order_key(ScanDecimal value) { return {value.low, value.high ^ (uint64_t{1} << 63)}; }

}  // namespace bamquery
