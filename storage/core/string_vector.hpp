// How the strings of 1,024 rows lie in their payload, and where one of them is: for CPUs and GPUs.
#pragma once

#include "storage/core/packed_vector.hpp"

namespace bamquery {

inline constexpr uint32_t kStringParts = kPackedVectorRows / kPackedPartRows;
inline constexpr uint32_t kMostEndBits = 32;
/// A byte that is stored stands for at most so many.
inline constexpr uint64_t kMostPlainOfStored = 8;

inline constexpr uint32_t kMostSymbols = 255;
inline constexpr uint32_t kMostSymbolBytes = 8;
/// The code behind which a byte stands for itself.
inline constexpr uint8_t kSymbolEscape = 255;

/// How the bytes of a vector's strings are stored.
enum class StringForm : uint8_t {
  kBytes = 0,   ///< As they are.
  kSymbols = 1  ///< As codes of symbols, each string for itself.
};

/// What a vector of strings is read by, as files have it: bamquery.storage.encodings.fsst.parameters has the
/// same for numpy.
///
/// The payload begins with where strings end, a code of `bits` bits each, in whole parts of 128; then come
/// all strings' bytes. An end counts from where its part begins. Where there are nulls, the lowest bit of a
/// code says whether the row is one, and the end is in those above.
struct StringVector {
  uint64_t offset;       ///< Of the payload in the column's data: a multiple of 16.
  uint32_t plain_bytes;  ///< Of all strings.
  uint8_t bits;          ///< Of a code.
  uint8_t form;
  uint16_t has_nulls;                ///< 0 or 1.
  uint32_t part_ends[kStringParts];  ///< Where each part's bytes end, counted from the first part's.

  BAMQUERY_CORE uint32_t stored_bytes() const { return part_ends[kStringParts - 1]; }
  BAMQUERY_CORE uint32_t part_start(uint32_t part) const { return part == 0 ? 0 : part_ends[part - 1]; }
  BAMQUERY_CORE bool is_compressed() const { return form == static_cast<uint8_t>(StringForm::kSymbols); }
};
static_assert(sizeof(StringVector) == 48);

/// Bytes of a whole payload: a multiple of 16.
BAMQUERY_CORE uint64_t string_payload_bytes(const StringVector& vector, uint32_t rows) {
  return round_up_16(packed_code_bytes(vector.bits, rows) + vector.stored_bytes());
}

/// Where a row's bytes begin and end, counted from those of its vector's first row.
struct StringRow {
  uint32_t begin;
  uint32_t end;
  bool is_null;
  bool is_possible;  ///< If not, it has no bytes.
};

/// The string of a row of a vector of `rows` rows, by its code and that of the row before, which does not
/// count where a part begins. Codes may be any.
BAMQUERY_CORE StringRow string_row(const StringVector& vector, uint32_t rows, uint32_t row, uint64_t before,
                                   uint64_t code) {
  const uint32_t part = row / kPackedPartRows;
  const uint32_t base = vector.part_start(part);
  const uint32_t size = vector.part_ends[part] - base;
  const uint64_t begin = row % kPackedPartRows == 0 ? 0 : before >> vector.has_nulls;
  const uint64_t end = code >> vector.has_nulls;
  const bool is_null = (code & vector.has_nulls) != 0;
  const bool is_last = row + 1 == rows || (row + 1) % kPackedPartRows == 0;
  const bool is_possible =
      begin <= end && end <= size && (!is_last || end == size) && (!is_null || begin == end);
  if (!is_possible) return {base, base, is_null, false};
  return {base + static_cast<uint32_t>(begin), base + static_cast<uint32_t>(end), is_null, true};
}

/// Symbols by their codes, as kernels have them.
struct StringSymbols {
  uint64_t bytes[kMostSymbols + 1];   ///< The first one least significant.
  uint8_t lengths[kMostSymbols + 1];  ///< 0 of codes that are no symbols.
};
static_assert(sizeof(StringSymbols) == 2304);

}  // namespace bamquery
