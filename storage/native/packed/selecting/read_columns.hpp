// Several packed columns of a file, of which threads read and decode runs of vectors side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/files/block_file.hpp"
#include "storage/native/packed/selecting/fetch.hpp"

namespace bamquery {

/// What becomes of a column's rows.
enum class Wanted : std::uint8_t {
  kPayload = 0,  ///< all of some vectors as they are stored
  kVectors = 1,  ///< the values of all rows of vectors
  kRows = 2      ///< the values of some rows
};

struct ColumnRequest {
  StoredPackedColumn column;
  Wanted wanted;
  std::span<const std::int64_t> places;  ///< Vectors, or rows; they ascend.
  std::span<std::byte> values;
  std::uint8_t* bitmap;                   ///< Null of payloads.
  std::span<const std::int64_t> lengths;  ///< Of what codes stand for, if `coded`.
  bool coded = false;
  bool are_alike = false;  ///< Whether all lengths are the same, as those of flags are.
};

/// Some code stands for nothing.
inline constexpr std::int64_t kBeyond = -1;

struct ReadColumn {
  ReadCounts counts;
  std::int64_t mismatch = -1;  ///< The first vector whose checksum differs; columns behind are not looked at.
  std::int64_t nulls = 0;
  std::int64_t string_bytes = 0;  ///< Of what codes of all rows stand for, or kBeyond.
};

/// Bytes of so many values.
std::size_t value_bytes(ValueKind kind, std::int64_t rows);

/// Rows that a request's values are.
std::int64_t rows_of(const ColumnRequest& request);

/// Raises std::invalid_argument where parameters are impossible, places are none of a column's or do not
/// ascend, or payloads do not fit.
std::vector<ReadColumn> read_columns(const BlockFile& file, std::span<const ColumnRequest> requests);

}  // namespace bamquery
