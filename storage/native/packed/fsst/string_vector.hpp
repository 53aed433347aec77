// A vector of strings in memory, looked at before use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/core/string_vector.hpp"
#include "storage/native/packed/codes.hpp"
#include "storage/native/statistics.hpp"

namespace bamquery {

/// std::invalid_argument that names vector number `vector`.
[[noreturn]] void throw_string_fault(std::int64_t vector, const char* fault);

/// What is wrong with parameters of `rows` rows; null where they are possible.
const char* string_fault(const StringVector& vector, std::uint32_t rows);

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
