// Vectors of strings decoded, in whole or in part; and single rows, of which only some bytes are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/unset_vector.hpp"
#include "storage/native/packed/fsst/string_vector.hpp"
#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

/// Strings as Arrow has them.
struct Strings {
  UnsetVector<std::int64_t> offsets;  ///< One more than there are strings, from 0 on.
  UnsetVector<std::uint8_t> data;     ///< At least `offsets.back()` bytes.
  std::vector<std::uint8_t> bitmap;   ///< A bit a row, set where there is a string.
  std::int64_t nulls = 0;
};

/// Vectors as `unpack_vectors` (decode.hpp) takes them.
struct StringVectors {
  std::span<const std::byte> payload;
  std::span<const std::int64_t> starts;
  std::span<const StringVector> vectors;
  std::span<const std::int64_t> rows;
};

/// All strings of some vectors.
///
/// Raises std::invalid_argument where bytes cannot be such vectors; whatever they are, none outside of the
/// arguments is read, and no more memory is taken than kMostPlainOfStored times the payload's.
Strings unpack_strings(const SymbolTable& table, const StringVectors& vectors);

/// Those at ascending positions among the vectors' rows. Raises the same, for positions that are none, too.
Strings pick_strings(const SymbolTable& table, const StringVectors& vectors,
                     std::span<const std::int64_t> positions);

/// A column of so many rows, of which `vectors` are all; `data_bytes` is the size of its payloads.
struct StringColumn {
  std::span<const StringVector> vectors;
  std::int64_t rows;
  std::int64_t data_bytes;
};

/// Bytes that are loaded to find a row: they hold the codes of its end and of the one before.
inline constexpr std::int64_t kEndBytes = 16;

/// Where in the column's data `kEndBytes` bytes say where a row's string is: ascending for ascending `rows`,
/// and up to as many behind the data. Raises std::invalid_argument where there is no such row.
std::vector<std::int64_t> string_places(const StringColumn& column, std::span<const std::int64_t> rows);

/// Where the strings of rows are in the column's data, as they are stored.
struct StringRanges {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> lengths;
  std::vector<std::uint8_t> bitmap;
  std::int64_t nulls = 0;
};

/// `ends` are the bytes at `string_places`. Raises std::invalid_argument where they cannot be.
StringRanges string_ranges(const StringColumn& column, std::span<const std::int64_t> rows,
                           std::span<const std::byte> ends);

/// The strings of rows, whose bytes of `lengths` are end to end in `stored`; their bitmap is left empty.
/// Raises std::invalid_argument where they cannot be.
Strings decode_strings(const SymbolTable& table, const StringColumn& column,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                       std::span<const std::byte> stored);

}  // namespace bamquery
