// Single rows of packed columns: where their codes lie, and what values these make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// A packed column of which single rows are read. `rows` of all members are ascending rows of the column.
///
/// Every member looks at the parameters of the vectors that it meets, and raises std::invalid_argument where
/// these are impossible or rows are not the column's.
class PackedRows {
 public:
  /// `vectors` are all of the column's, which has `column_rows` rows and `data_bytes` bytes of payloads.
  PackedRows(ValueKind kind, std::span<const PackedVector> vectors, std::int64_t column_rows,
             std::int64_t data_bytes);

  /// Where the 8 bytes start that hold each row's code, or its plain value; they end at most 8 bytes behind
  /// the data.
  void places(std::span<const std::int64_t> rows, std::int64_t* places) const;

  /// What still has to be read: 8 bytes at `places[i]` for the row at `positions[i]` of those asked for.
  struct Rest {
    std::vector<std::int64_t> positions;
    std::vector<std::int64_t> places;
  };

  /// Values of rows, made of the words at their places; `values` as Arrow has them, nulls as zeros; all bits
  /// of `bitmap` are set. Escapes, and rows of raw vectors with nulls, are the rest.
  Rest unpack(std::span<const std::int64_t> rows, std::span<const std::uint64_t> words,
              const PackedScale& scale, std::byte* values, std::uint8_t* bitmap) const;

  /// Puts the rest into what `unpack` has written, made of the words at the rest's places.
  void unpack_rest(std::span<const std::int64_t> rows, std::span<const std::int64_t> positions,
                   std::span<const std::uint64_t> words, const PackedScale& scale, std::byte* values,
                   std::uint8_t* bitmap) const;

 private:
  template <typename Function>
  void for_rows(std::span<const std::int64_t> rows, Function&& function) const;

  ValueKind kind_;
  PackedKind packed_;
  std::span<const PackedVector> vectors_;
  std::int64_t column_rows_;
  std::int64_t data_bytes_;
};

}  // namespace bamquery
