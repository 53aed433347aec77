// Some rows of a packed column in a file, out of whole vectors that are compared with their checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/native/files/block_file.hpp"
#include "storage/native/packed/payload.hpp"

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

/// Reads the vectors that hold `rows`, ascending rows of the column, and decodes these.
///
/// `values` and `bitmap` are as `pick_rows` fills them; without nulls, `bitmap` stays as it is. Raises
/// std::invalid_argument where parameters are impossible, or rows are none of the column's or do not ascend.
FetchedRows fetch_packed_rows(const BlockFile& file, const StoredPackedColumn& column,
                              std::span<const std::int64_t> rows, std::byte* values, std::uint8_t* bitmap);

}  // namespace bamquery
