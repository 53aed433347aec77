#include "storage/native/packed/parameters.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace bamquery {
namespace {

// Codes of at most so many bits are a small dictionary, any of whose values may be frequent; of wider ones
// few rows are escapes. See WindowSearch.
constexpr std::uint32_t kDictionaryBits = 6;

}  // namespace

double referring_chance(const PackedVector& vector, std::uint32_t rows) {
  if (vector.is_raw()) return vector.has_nulls() ? 1.0 : 0.0;
  const double among = vector.bits <= kDictionaryBits ? static_cast<double>(1u << vector.bits) : rows;
  return std::min(static_cast<double>(vector.escapes()) / among, 1.0);
}

std::optional<PackedColumnFault> check_packed_column(ValueKind kind, std::span<const PackedVector> vectors,
                                                     std::int64_t column_rows, std::int64_t data_bytes,
                                                     std::span<const std::int64_t> null_counts,
                                                     const PackedColumnPayloads& payloads) {
  const auto count = static_cast<std::int64_t>(vectors.size());
  if (column_rows < 0 || data_bytes < 0 || (column_rows + kVectorRows - 1) / kVectorRows != count ||
      null_counts.size() != vectors.size()) {
    throw std::invalid_argument("parameters are not those of so many rows");
  }
  const PackedKind packed = packed_kind(kind);
  const auto available = static_cast<std::uint64_t>(data_bytes);
  std::uint64_t end = 0;  // of the payloads before: none passes that is larger than its plain rows
  std::optional<PackedColumnFault> gap;
  std::optional<PackedColumnFault> odd;
  for (std::int64_t number = 0; number < count; ++number) {
    const auto at = static_cast<std::size_t>(number);
    const PackedVector& vector = vectors[at];
    const auto rows = static_cast<std::uint32_t>(std::min(kVectorRows, column_rows - number * kVectorRows));
    const std::uint64_t start = vector.payload_start();
    const PackedFault fault =
        packed_fault(vector, packed.type, rows, packed.width, start > available ? 0 : available - start);
    if (fault != PackedFault::kNone) return PackedColumnFault{number, packed_fault_text(fault)};
    if (start > available) {
      return PackedColumnFault{number, packed_fault_text(PackedFault::kPayload)};  // of no bytes
    }
    const std::uint64_t size = packed_bytes(vector, rows, packed.width);
    if (!gap && start != end) gap = {number, "its values do not lie behind those before"};
    if (!odd && vector.has_nulls() != (null_counts[at] > 0)) {
      odd = {number, "whether it has nulls is said in two ways"};
    }
    end += size;
    payloads.starts[at] = static_cast<std::int64_t>(start);
    payloads.sizes[at] = static_cast<std::int64_t>(size);
    payloads.referring[at] = rows * referring_chance(vector, rows);
  }
  if (!gap && count > 0 && end != available) {
    gap = {count - 1, "its values do not lie behind those before"};
  }
  return gap ? gap : odd;
}

}  // namespace bamquery
