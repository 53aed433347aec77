// Keys of whole numbers as one number: equal keys have equal codes, different ones different codes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// Codes for the keys within the ranges of some rows' keys.
class RowCodes {
 public:
  /// For the keys of those rows; null is a value where `null_is_key` says so. Nothing where 64 bits are few.
  static std::optional<RowCodes> fit(std::span<const KeyColumn> columns,
                                     const std::vector<bool>& null_is_key);

  /// How many there are, from 0 on; 0 where they take all 64 bits.
  std::uint64_t count() const { return count_; }

  /// Whether a table with a place for each takes no more memory than one of the hashes of so many rows, or
  /// little.
  bool has_place_each(std::int64_t rows) const {
    return count_ - 1 < std::max(kSparsest * static_cast<std::uint64_t>(rows), kSmallTable);
  }

  /// The codes of rows from `start` on, at most a block; `usable` tells which of them can be equal to any of
  /// the rows that the codes were made for, the others get 0. Columns are of the same kinds as those were.
  void encode(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t count,
              std::uint64_t* codes, std::uint8_t* usable) const;

  /// The same for those rows themselves where each null is a key, so that all can.
  void encode_own(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t count,
                  std::uint64_t* codes) const;

 private:
  static constexpr std::uint64_t kSparsest = 16, kSmallTable = 1 << 16;

  struct Range {
    std::uint64_t low;
    std::uint64_t span;  // the greatest distance from it
    bool has_null_code;  // it follows those of values
    std::uint64_t codes() const { return span + 1 + (has_null_code ? 1 : 0); }
  };
  static std::optional<Range> range_of(const KeyColumn& column);

  std::vector<Range> ranges_;
  std::uint64_t count_ = 0;
};

}  // namespace bamquery
