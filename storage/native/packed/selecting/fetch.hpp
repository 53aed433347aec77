// Some rows of a packed column in a file, out of whole vectors that are compared with their checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/files/block_file.hpp"
#include "storage/native/packed/payload.hpp"
#include "storage/native/packed/selecting/pick.hpp"

namespace bamquery {

/// A packed column in a file.
struct StoredPackedColumn {
  ValueKind kind;
  PackedScale scale;
  std::span<const PackedVector> vectors;  ///< All of them.
  std::int64_t rows;
  std::int64_t base;                         ///< Where in the file its payloads begin.
  std::int64_t bytes;                        ///< Of all payloads.
  std::span<const std::uint32_t> checksums;  ///< CRC-32C of each vector; none: nothing is compared.
};

struct FetchedRows {
  ReadCounts counts;
  std::int64_t mismatch =
      -1;  ///< Number of the first vector whose checksum differs; values mean nothing then.
  std::int64_t nulls = 0;
};

/// Some rows of a column, which are read out of the vectors that hold them.
class RowFetch {
 public:
  /// `rows`: ascending rows of the column. `values` and `bitmap` are as `pick_rows` fills them; without
  /// nulls, `bitmap` stays as it is. `before`: another column's, perhaps of the same rows, whose vectors need
  /// not be looked for again; or null.
  ///
  /// Raises std::invalid_argument where parameters are impossible, or rows are none of the column's or do not
  /// ascend.
  RowFetch(const BlockFile& file, const StoredPackedColumn& column, std::span<const std::int64_t> rows,
           std::byte* values, std::uint8_t* bitmap, const RowFetch* before = nullptr);

  /// How many vectors hold some of the rows.
  std::size_t vectors() const { return numbers_.size(); }
  /// How many of the rows are in vectors before number `vector` of these.
  std::int64_t rows_before(std::size_t vector) const { return vector == 0 ? 0 : ends_[vector - 1]; }
  /// The first of these vectors from `vector` on before which a run may end that one thread reads: with a
  /// byte of the bitmap, if it is written to. There is one run of a file whose reads have to be waited for.
  std::size_t run_end(std::size_t vector);

  /// Reads vectors `begin` to `end` - 1, and decodes their rows.
  FetchedRows read(std::size_t begin, std::size_t end) const;
  /// What several such reads were together.
  ReadCounts count() const { return count_blocks(ranges(), file_.block_size()); }

 private:
  RangeItems ranges() const { return {offsets_, lengths_}; }

  const BlockFile& file_;
  const StoredPackedColumn& column_;
  std::span<const std::int64_t> rows_;
  PickTarget target_;
  // An entry for each of the vectors.
  std::vector<std::int64_t> numbers_;
  std::vector<PackedVector> held_;
  std::vector<std::int64_t> counts_;   // of rows that each has
  std::vector<std::int64_t> begins_;   // the first of them
  std::vector<std::int64_t> ends_;     // how many of the wanted rows are in it or before
  std::vector<std::int64_t> offsets_;  // in the file
  std::vector<std::int64_t> lengths_;
  std::vector<std::uint32_t> checksums_;
  bool has_nulls_ = false;
  std::optional<bool> at_hand_;  // once somebody has asked
};

/// All of them, with threads that are free.
FetchedRows fetch_packed_rows(const BlockFile& file, const StoredPackedColumn& column,
                              std::span<const std::int64_t> rows, std::byte* values, std::uint8_t* bitmap);

}  // namespace bamquery
