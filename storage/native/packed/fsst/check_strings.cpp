#include "storage/native/packed/fsst/check_strings.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace bamquery {

std::optional<StringColumnFault> check_string_column(const StringColumn& column,
                                                     const StringColumnPayloads& payloads) {
  const auto count = static_cast<std::int64_t>(column.vectors.size());
  if (column.rows < 0 || column.data_bytes < 0 || (column.rows + kVectorRows - 1) / kVectorRows != count) {
    throw std::invalid_argument("parameters are not those of so many rows");
  }
  std::uint64_t end = 0;  // of the payloads before: a vector's parameters bound it to little more than 4 GiB
  for (std::int64_t number = 0; number < count; ++number) {
    const auto at = static_cast<std::size_t>(number);
    const StringVector& vector = column.vectors[at];
    const auto rows = static_cast<std::uint32_t>(std::min(kVectorRows, column.rows - number * kVectorRows));
    const char* fault = string_fault(vector, rows);
    if (fault != nullptr) return StringColumnFault{number, fault};
    const std::uint64_t start = end;
    const std::uint64_t size = string_payload_bytes(vector, rows);
    end += size;
    const bool is_last = number + 1 == count;
    if (vector.offset != start || (is_last && end != static_cast<std::uint64_t>(column.data_bytes))) {
      return StringColumnFault{number, "its values do not lie behind those before"};
    }
    payloads.starts[at] = static_cast<std::int64_t>(start);
    payloads.sizes[at] = static_cast<std::int64_t>(size);
    payloads.code_bytes[at] = static_cast<std::int64_t>(packed_code_bytes(vector.bits, rows));
  }
  return std::nullopt;
}

std::uint64_t plain_string_bytes(const StringColumn& column) {
  std::uint64_t total = 0;
  for (const StringVector& vector : column.vectors) total += vector.plain_bytes;
  return total;
}

}  // namespace bamquery
