// Parameters of all vectors of a packed column, compared at once with all that bounds them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// How likely a row of the vector, which has so many, has something behind the codes, or a bit of the bitmap
/// of plain values.
///
/// Which rows are escapes, only data tell: of narrow codes each is taken to be as frequent as the others, of
/// wide ones each escape to be one row's.
double referring_chance(const PackedVector& vector, std::uint32_t rows);

/// The first vector that cannot be, and why, in words of the readers' errors.
struct PackedColumnFault {
  std::int64_t vector;
  const char* what;
};

/// What is said of each vector of a column: memory for as many numbers as it has vectors.
struct PackedColumnPayloads {
  std::int64_t* starts;  ///< Of payloads in the column's data, in bytes.
  std::int64_t* sizes;   ///< Of payloads, in bytes.
  double* referring;     ///< Expected rows that are read in two steps: see `referring_chance`.
};

/// Looks at the parameters of a column of `column_rows` rows and `data_bytes` bytes of payloads, in which
/// statistics know `null_counts` nulls of each vector.
///
/// Payloads must lie end to end and fill the data, and codes of NULL be where there are nulls. Whatever
/// passes can be decoded, and reaches nothing outside of the data. Of impossible vectors the first one is the
/// fault, then of gaps, then of nulls; what is written of the column means nothing then. Raises
/// std::invalid_argument where there are not as many parameters or counts as rows have vectors.
std::optional<PackedColumnFault> check_packed_column(ValueKind kind, std::span<const PackedVector> vectors,
                                                     std::int64_t column_rows, std::int64_t data_bytes,
                                                     std::span<const std::int64_t> null_counts,
                                                     const PackedColumnPayloads& payloads);

}  // namespace bamquery
