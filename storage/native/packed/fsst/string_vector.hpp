// How the strings of one vector lie in its payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/packed/codes.hpp"
#include "storage/native/statistics.hpp"

namespace bamquery {

inline constexpr std::uint32_t kStringParts = kPackedVectorRows / kPackedPartRows;
inline constexpr std::uint32_t kMostEndBits = 32;
/// A byte that is stored stands for at most so many.
inline constexpr std::uint64_t kMostPlainOfStored = 8;

/// How the bytes of a vector's strings are stored.
enum class StringForm : std::uint8_t {
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
  std::uint64_t offset;       ///< Of the payload in the column's data: a multiple of 16.
  std::uint32_t plain_bytes;  ///< Of all strings.
  std::uint8_t bits;          ///< Of a code.
  std::uint8_t form;
  std::uint16_t has_nulls;                ///< 0 or 1.
  std::uint32_t part_ends[kStringParts];  ///< Where each part's bytes end, counted from the first part's.

  std::uint32_t stored_bytes() const { return part_ends[kStringParts - 1]; }
  std::uint32_t part_start(std::uint32_t part) const { return part == 0 ? 0 : part_ends[part - 1]; }
  bool is_compressed() const { return form == static_cast<std::uint8_t>(StringForm::kSymbols); }
};
static_assert(sizeof(StringVector) == 48);

/// std::invalid_argument that names vector number `vector`.
[[noreturn]] void throw_string_fault(std::int64_t vector, const char* fault);

/// What is wrong with parameters of `rows` rows; null where they are possible.
const char* string_fault(const StringVector& vector, std::uint32_t rows);

/// Bytes of a whole payload: a multiple of 16.
std::uint64_t string_payload_bytes(const StringVector& vector, std::uint32_t rows);

/// A vector of strings in memory: parameters are compared with all that bounds them when it is made.
class StringPayload {
 public:
  /// Raises std::invalid_argument, which names vector `number`, where parameters are impossible.
  StringPayload(std::span<const std::byte> data, std::int64_t start, const StringVector& vector,
                std::int64_t rows, std::int64_t number);

  /// Where each string begins and ends, counted from `strings()`, and whether it is null: of rows.
  ///
  /// Raises std::invalid_argument unless ends ascend, nulls are empty, and the last string of each part ends
  /// with it.
  struct Row {
    std::uint32_t begin;
    std::uint32_t end;
    bool is_null;
  };
  void read_rows(std::span<Row> rows) const;

  const std::uint8_t* strings() const { return strings_; }
  const StringVector& vector() const { return vector_; }
  std::uint32_t rows() const { return rows_; }

 private:
  template <typename Code>
  void read_rows_as(const std::byte* codes, std::span<Row> rows) const;

  const StringVector& vector_;
  const std::byte* codes_;
  const std::uint8_t* strings_;
  std::size_t available_;
  std::int64_t number_;
  std::uint32_t rows_;
};

}  // namespace bamquery
