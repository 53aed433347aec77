// Whether a vector can hold a row that passes, by its bounds.
#pragma once

#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/scan_predicate.hpp"

namespace bamquery {

/// One vector of a zone map: what `bamquery.engine.cuda.scan.kernel_tables.zones` packs.
struct ScanZone {
  static constexpr uint64_t kKnown =
      1;  ///< There are values that are neither null nor NaN, between the bounds.
  static constexpr uint64_t kNans = 2;
  static constexpr uint64_t kNulls = 4;

  uint64_t low;   ///< Key of the smallest value.
  uint64_t high;  ///< Key of the greatest.
  uint64_t flags;

  /// False only if no row passes; `nan` is NaN's key.
  BAMQUERY_CORE bool may_pass(const ScanPredicate<uint64_t>& predicate, uint64_t nan) const {
    if (predicate.wants_nulls != 0) return (flags & kNulls) != 0 && predicate.terms == 0;
    const bool known = (flags & kKnown) != 0 && holds(predicate, low, high);
    return known || ((flags & kNans) != 0 && holds(predicate, nan, nan));
  }

  /// Whether each term by itself is true for some key from `from` to `to`.
  BAMQUERY_CORE static bool holds(const ScanPredicate<uint64_t>& predicate, uint64_t from, uint64_t to) {
    for (uint32_t t = 0; t < predicate.terms; ++t) {
      const ScanTerm term = predicate.term[t];
      bool touched = false;
      bool covered = false;
      for (uint32_t i = 0; i < term.count; ++i) {
        const ScanInterval<uint64_t> interval = predicate.interval[term.first + i];
        touched |= interval.low <= to && from <= interval.high;
        covered |= interval.low <= from && to <= interval.high;
      }
      if (term.negated != 0 ? covered : !touched) return false;
    }
    return true;
  }
};
static_assert(sizeof(ScanZone) == 24);

/// The parts of one vector: keys of their smallest and greatest values; `low` is above `high` where there is
/// none that is neither null nor NaN.
struct ScanParts {
  uint64_t low[kParts];
  uint64_t high[kParts];

  /// Bit p: part p can hold a row that passes. Where its NaNs may lie only the vector's `zone` tells.
  BAMQUERY_CORE uint32_t may_pass(const ScanZone& zone, const ScanPredicate<uint64_t>& predicate,
                                  uint64_t nan) const {
    if (predicate.wants_nulls != 0) return kAllParts;
    if ((zone.flags & ScanZone::kNans) != 0 && ScanZone::holds(predicate, nan, nan)) return kAllParts;
    uint32_t found = 0;
    for (uint32_t part = 0; part < kParts; ++part) {
      const bool passes = low[part] <= high[part] && ScanZone::holds(predicate, low[part], high[part]);
      found |= static_cast<uint32_t>(passes) << part;
    }
    return found;
  }
};
static_assert(sizeof(ScanParts) == 128);

}  // namespace bamquery
