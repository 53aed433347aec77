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

  /// What reading rows one by one takes, in blocks.
  struct Blocks {
    std::int64_t runs = 0;    ///< Of consecutive blocks with codes.
    std::int64_t blocks = 0;  ///< With codes.
    double rest_runs = 0;     ///< Expected ones of the rest, in blocks without any of these codes.
    double rest_blocks = 0;   ///< Expected ones with the rest, and without any of these codes.
  };

  /// Counts blocks of a file in which the column's data start at `base`. Which rows are escapes, only data
  /// tell: of narrow codes each is taken to be as frequent as the others, of wide ones each escape to be one
  /// row's.
  Blocks count_blocks(std::span<const std::int64_t> rows, std::int64_t base, std::int64_t block_size) const;

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
  /// A vector, its first row, and how many it has.
  struct Found {
    const PackedVector* vector;
    std::int64_t begin;
    std::uint32_t rows;
  };

  Found find_vector(std::int64_t row) const;
  std::int64_t place_of(const PackedVector& vector, std::uint32_t row) const;
  template <typename Function>
  void for_rows(std::span<const std::int64_t> rows, Function&& function) const;

  ValueKind kind_;
  PackedKind packed_;
  std::span<const PackedVector> vectors_;
  std::int64_t column_rows_;
  std::int64_t data_bytes_;
};

}  // namespace bamquery
