// Which numbers of a vector become ordinary codes, and which escapes.
#pragma once

#include <cstdint>
#include <span>

#include "storage/core/packed_vector.hpp"
#include "storage/native/packed/codes.hpp"
#include "storage/native/packed/packing/distinct_bits.hpp"

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
  std::uint32_t escape_bytes;  ///< Of each escape, those included that a window makes of numbers.
};

/// The window of all numbers, from `low` to `high`.
CodeWindow whole_window(std::int64_t low, std::int64_t high, const SpecialCounts& special);

/// The window of a vector that has no numbers, but values that are escapes.
CodeWindow escapes_window(const SpecialCounts& special);

/// Finds windows that leave outliers to escapes.
class WindowSearch {
 public:
  /// The cheapest window; `whole` is that of all `numbers`, which are between `low` and `high`.
  ///
  /// Codes of more than 6 bits leave at most 1/16 of the rows to escapes: each costs a second read where
  /// single rows are read. Narrower ones are a small dictionary, whose escapes cost little.
  CodeWindow find(SimdLevel level, std::span<const std::int64_t> numbers, std::int64_t low, std::int64_t high,
                  const SpecialCounts& special, const CodeWindow& whole);

 private:
  CodeWindow find_among_few(std::span<const std::uint32_t> rows, std::int64_t low,
                            const SpecialCounts& special, const CodeWindow& whole);

  DistinctBits distinct_;
  CodeBuffer<std::uint32_t> narrow_;
  CodeBuffer<std::uint64_t> wide_;
};

}  // namespace bamquery
