// Numbers of keys by what tells most of them apart, in a table that grows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/native/keys/hash_words.hpp"
#include "engine/native/keys/key_column.hpp"
#include "engine/native/keys/zeroed_table.hpp"

namespace bamquery {

/// How many different keys rows have together if `held` were among the first `seen`, and each row had one of
/// a number of keys by chance. Of n rows and k keys, k * (1 - exp(-n / k)) are different.
inline std::uint64_t expected_keys(std::uint64_t held, std::int64_t seen, std::int64_t rows) {
  const auto different = [](double keys, std::int64_t drawn) {
    return -keys * std::expm1(-static_cast<double>(drawn) / keys);
  };
  // Keys for each row beyond which nearly all rows have different ones, and halvings of what is unknown.
  constexpr double kMostKeysEach = 64;
  constexpr int kSteps = 24;
  double fewest = static_cast<double>(held), most = kMostKeysEach * static_cast<double>(rows);
  for (int step = 0; step < kSteps; ++step) {
    const double keys = std::sqrt(fewest * most);
    (different(keys, seen) < static_cast<double>(held) ? fewest : most) = keys;
  }
  return static_cast<std::uint64_t>(different(most, rows));
}

/// An open-addressed table of numbers, from 1 on, beside what tells most keys apart.
class NumberTable {
 public:
  /// Rows that a slot is asked for ahead.
  static constexpr std::int64_t kAhead = 16;

  struct Slot {
    std::uint64_t tag;  ///< A code, or a hash of several words.
    std::uint32_t number;
  };

  explicit NumberTable(std::int64_t rows) {
    resize(slots_for(static_cast<std::uint64_t>(std::min(rows, 2 * kBlockRows))));
  }

  /// Makes room for a block of other keys where `held` ones are there after `seen` of `rows` rows; `hash_of`
  /// gives the hash of a tag.
  template <typename HashOf>
  void reserve_block(std::uint64_t held, std::int64_t seen, std::int64_t rows, HashOf&& hash_of) {
    const std::uint64_t needed = held + static_cast<std::uint64_t>(kBlockRows);
    if (2 * needed <= mask_ + 1) return;
    std::uint64_t expected = kGrowth * needed;
    if (seen > rows / kSample) {  // enough to tell how many the others have: each table costs its pages
      expected = std::max(needed, expected_keys(held, seen, rows));
    }
    const auto before = std::move(slots_);
    const std::uint64_t slots = mask_ + 1;
    resize(slots_for(expected));
    for (std::uint64_t i = 0; i < slots; ++i) {
      if (before[i].number == 0) continue;
      std::uint64_t at = hash_of(before[i].tag) & mask_;
      while (slots_[at].number != 0) at = (at + 1) & mask_;
      slots_[at] = before[i];
    }
  }

  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_], 1); }
  /// Whether asking ahead is worth it.
  bool is_large() const { return mask_ >= kPrefetchedSlots; }

  /// The slot of a key, or a free one for it; `is_same` compares further where tags are equal.
  template <typename IsSame>
  Slot& find(std::uint64_t hash, std::uint64_t tag, IsSame&& is_same) {
    std::uint64_t at = hash & mask_;
    while (slots_[at].number != 0 && !(slots_[at].tag == tag && is_same(slots_[at].number - 1))) {
      at = (at + 1) & mask_;
    }
    return slots_[at];
  }

 private:
  // Slots from which a table leaves the second cache.
  static constexpr std::uint64_t kPrefetchedSlots = 1 << 15;
  // How many times more keys a table that is full is made for, and the part of the rows that tells better.
  static constexpr std::uint64_t kGrowth = 2;
  static constexpr std::int64_t kSample = 16;

  void resize(std::uint64_t slots) {
    slots_ = ZeroedTable<Slot>(slots);
    mask_ = slots - 1;
  }

  ZeroedTable<Slot> slots_;
  std::uint64_t mask_ = 0;
};

}  // namespace bamquery
