// Parameters of all vectors of a column of strings, compared at once with all that bounds them.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/native/packed/fsst/unpack_strings.hpp"

namespace bamquery {

/// The first vector that cannot be, and why, in words of the readers' errors.
struct StringColumnFault {
  std::int64_t vector;
  const char* what;
};

/// What is said of each vector of a column: memory for as many numbers as it has vectors.
struct StringColumnPayloads {
  std::int64_t* starts;      ///< Of payloads in the column's data, in bytes.
  std::int64_t* sizes;       ///< Of payloads, in bytes.
  std::int64_t* code_bytes;  ///< Of the codes of ends, which payloads begin with.
};

/// Looks at a column's parameters, and at whether payloads lie end to end and fill its data: whatever passes
/// reaches nothing outside of it. What is written of a column with a fault means nothing.
///
/// Raises std::invalid_argument where there are not as many parameters as rows have vectors.
std::optional<StringColumnFault> check_string_column(const StringColumn& column,
                                                     const StringColumnPayloads& payloads);

/// Bytes of all strings, as parameters say.
std::uint64_t plain_string_bytes(const StringColumn& column);

}  // namespace bamquery
