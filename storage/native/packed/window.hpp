// Which numbers of a vector become ordinary codes, and which escapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/core/packed_vector.hpp"

namespace bamquery {

/// Numbers base to base + width - 1 are ordinary codes of `bits` bits.
struct CodeWindow {
  std::int64_t base = 0;
  std::uint64_t width = 0;
  std::uint32_t bits = kPackedRawBits;  ///< kPackedRawBits: no window, raw.
  std::uint64_t payload_bits = ~std::uint64_t{0};
};

/// What a vector has beside numbers.
struct SpecialCounts {
  std::uint32_t rows;     ///< Of the vector, nulls included.
  std::uint32_t escapes;  ///< Distinct values that are no numbers.
  std::uint32_t hits;     ///< Rows that have one of them.
  bool nulls;
};

/// The window of all numbers, from `low` to `high`.
CodeWindow whole_window(std::int64_t low, std::int64_t high, const SpecialCounts& special);

/// The window of a vector that has no numbers, but values that are escapes.
CodeWindow escapes_window(const SpecialCounts& special);

/// Finds windows that leave outliers to escapes. Sorts, so it keeps its memory.
class WindowSearch {
 public:
  /// The cheapest window; `whole` is that of all `numbers`, which are between `low` and `high`.
  ///
  /// Codes of more than 6 bits leave at most 1/16 of the rows to escapes: each costs a second read where
  /// single rows are read. Narrower ones are a small dictionary, whose escapes cost little.
  CodeWindow find(std::span<const std::int64_t> numbers, std::int64_t low, std::int64_t high,
                  const SpecialCounts& special, const CodeWindow& whole);

 private:
  template <typename Offset>
  CodeWindow find_sorted(std::span<const std::int64_t> numbers, std::int64_t low, std::uint32_t range_bits,
                         const SpecialCounts& special, const CodeWindow& whole);

  std::vector<std::uint64_t> sorted_, other_;
};

}  // namespace bamquery
