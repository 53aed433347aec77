#include "storage/native/packed/fsst/string_vector.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bamquery {

void throw_string_fault(std::int64_t vector, const char* fault) {
  throw std::invalid_argument("vector " + std::to_string(vector) + " of strings cannot be: " + fault);
}

const char* string_fault(const StringVector& vector, std::uint32_t rows) {
  if (vector.form > 1 || vector.has_nulls > 1) return "its form is none of strings";
  if (vector.bits > kMostEndBits + vector.has_nulls || vector.bits < vector.has_nulls) {
    return "its ends are too wide";
  }
  const std::uint32_t parts = (rows + kPackedPartRows - 1) / kPackedPartRows;
  for (std::uint32_t part = 0; part < kStringParts; ++part) {
    const std::uint32_t start = vector.part_start(part);
    if (vector.part_ends[part] < start) return "its parts do not ascend";
  }
  for (std::uint32_t part = parts; part < kStringParts; ++part) {
    if (vector.part_ends[part] != vector.part_start(part)) return "it has parts without rows";
  }
  const std::uint64_t stored = vector.stored_bytes();
  if (vector.is_compressed() ? vector.plain_bytes > kMostPlainOfStored * stored
                             : vector.plain_bytes != stored) {
    return "its strings cannot be as long as it says";
  }
  return nullptr;
}

StringPayload::StringPayload(std::span<const std::byte> data, std::int64_t start, const StringVector& vector,
                             std::int64_t rows, std::int64_t number)
    : vector_(vector), number_(number), rows_(static_cast<std::uint32_t>(rows)) {
  if (rows < 0 || rows > kPackedVectorRows) throw_string_fault(number, "it has too many rows");
  const char* fault = string_fault(vector, rows_);
  if (fault != nullptr) throw_string_fault(number, fault);
  if (start < 0 || static_cast<std::uint64_t>(start) > data.size() ||
      string_payload_bytes(vector, rows_) > data.size() - static_cast<std::uint64_t>(start)) {
    throw_string_fault(number, "it lies outside of the column's data");
  }
  codes_ = data.data() + start;
  available_ = data.size() - static_cast<std::uint64_t>(start);
  strings_ = reinterpret_cast<const std::uint8_t*>(codes_) + packed_code_bytes(vector.bits, rows_);
}

template <typename Code>
void StringPayload::read_rows_as(const std::byte* codes, std::span<Row> rows) const {
  CodeBuffer<Code> buffer;
  if (vector_.bits == 0) {
    std::memset(buffer.codes, 0, sizeof(Code) * rows_);
  } else {
    unpack_codes(simd_level(), codes, vector_.bits, rows_, buffer);
  }
  const unsigned shift = vector_.has_nulls;
  bool right = true;
  for (std::uint32_t first = 0; first < rows_; first += kPackedPartRows) {
    const std::uint32_t last = std::min(first + kPackedPartRows, rows_);
    const std::uint32_t base = vector_.part_start(first / kPackedPartRows);
    const std::uint32_t length = vector_.part_ends[first / kPackedPartRows] - base;
    std::uint32_t before = 0;
    for (std::uint32_t row = first; row < last; ++row) {
      const auto end = static_cast<std::uint32_t>(buffer.codes[row] >> shift);
      const bool is_null = (buffer.codes[row] & shift) != 0;
      right &= end >= before && (!is_null || end == before);
      rows[row] = {base + before, base + end, is_null};
      before = end;
    }
    right &= before == length;
  }
  if (!right) throw_string_fault(number_, "its strings' ends do not ascend within their parts");
}

void StringPayload::read_rows(std::span<Row> rows) const {
  const std::size_t bytes = packed_code_bytes(vector_.bits, rows_);
  std::array<std::byte, kPackedVectorRows / 8 * (kMostEndBits + 1) + kCodeSlack> copy;
  const std::byte* codes = codes_;
  if (bytes + kCodeSlack > available_) {
    if (bytes > 0) std::memcpy(copy.data(), codes, bytes);
    std::memset(copy.data() + bytes, 0, kCodeSlack);
    codes = copy.data();
  }
  if (vector_.bits <= kNarrowBits) {
    read_rows_as<std::uint32_t>(codes, rows);
  } else {
    read_rows_as<std::uint64_t>(codes, rows);
  }
}

}  // namespace bamquery
