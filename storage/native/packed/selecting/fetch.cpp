#include "storage/native/packed/selecting/fetch.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "storage/native/packed/selecting/pick.hpp"

namespace bamquery {
namespace {

// The vectors that hold some rows: an entry each in all of these.
struct Held {
  std::vector<std::int64_t> numbers;
  std::vector<PackedVector> vectors;
  std::vector<std::int64_t> rows;     // that each has
  std::vector<std::int64_t> begins;   // the first of them
  std::vector<std::int64_t> ends;     // how many of the wanted rows are in it or before
  std::vector<std::int64_t> offsets;  // in the file
  std::vector<std::int64_t> lengths;
  std::vector<std::uint32_t> checksums;
  bool has_nulls = false;
};

Held find_held(const StoredPackedColumn& column, std::span<const std::int64_t> rows) {
  const PackedKind kind = packed_kind(column.kind);
  Held held;
  const std::size_t most = std::min(rows.size(), column.vectors.size());
  for (auto* one : {&held.numbers, &held.rows, &held.begins, &held.ends, &held.offsets, &held.lengths}) {
    one->reserve(most);
  }
  held.vectors.reserve(most);
  held.checksums.reserve(column.checksums.empty() ? 0 : most);
  for (std::size_t i = 0; i < rows.size();) {
    if (rows[i] < 0 || rows[i] >= column.rows) throw std::invalid_argument("no such row");
    const std::int64_t number = rows[i] / kVectorRows;
    if (!held.numbers.empty() && number <= held.numbers.back()) {
      throw std::invalid_argument("rows do not ascend");
    }
    const auto at = static_cast<std::size_t>(number);
    const PackedVector& vector = column.vectors[at];
    const std::int64_t begin = number * kVectorRows;
    const std::int64_t count = std::min(kVectorRows, column.rows - begin);
    const auto start = static_cast<std::int64_t>(vector.payload_start());
    const PackedFault fault =
        start > column.bytes ? PackedFault::kPayload
                             : packed_fault(vector, kind.type, static_cast<std::uint32_t>(count), kind.width,
                                            static_cast<std::uint64_t>(column.bytes - start));
    if (fault != PackedFault::kNone) throw_packed_fault(number, fault);
    // No vector has more; whether they ascend is looked at where they are picked.
    const auto left = std::min(rows.size() - i, static_cast<std::size_t>(count));
    const auto* const from = rows.data() + i;
    i += static_cast<std::size_t>(std::lower_bound(from, from + left, begin + count) - from);
    held.numbers.push_back(number);
    held.vectors.push_back(vector);
    held.rows.push_back(count);
    held.begins.push_back(begin);
    held.ends.push_back(static_cast<std::int64_t>(i));
    held.offsets.push_back(column.base + start);
    held.lengths.push_back(
        static_cast<std::int64_t>(packed_bytes(vector, static_cast<std::uint32_t>(count), kind.width)));
    if (!column.checksums.empty()) held.checksums.push_back(column.checksums[at]);
    held.has_nulls |= vector.has_nulls();
  }
  return held;
}

}  // namespace

FetchedRows fetch_packed_rows(const BlockFile& file, const StoredPackedColumn& column,
                              std::span<const std::int64_t> rows, std::byte* values, std::uint8_t* bitmap) {
  const auto count = static_cast<std::int64_t>(column.vectors.size());
  if (column.rows < 0 || column.bytes < 0 || column.base < 0 ||
      (column.rows + kVectorRows - 1) / kVectorRows != count) {
    throw std::invalid_argument("parameters are not those of so many rows");
  }
  if (!column.checksums.empty() && column.checksums.size() != column.vectors.size()) {
    throw std::invalid_argument("as many checksums as vectors");
  }
  const Held held = find_held(column, rows);
  FetchedRows found;
  std::vector<std::int64_t> starts;  // of a turn's payloads in its bytes
  const auto take = [&](std::size_t first, std::size_t end, std::span<const std::byte> bytes) {
    const std::size_t vectors = end - first;
    starts.assign(vectors, 0);
    for (std::size_t i = 1; i < vectors; ++i) starts[i] = starts[i - 1] + held.lengths[first + i - 1];
    const auto from = static_cast<std::size_t>(first == 0 ? 0 : held.ends[first - 1]);
    const auto wanted = rows.subspan(from, static_cast<std::size_t>(held.ends[end - 1]) - from);
    const auto part = [&](const auto& of) { return std::span(of).subspan(first, vectors); };
    found.nulls += pick_rows(column.kind, bytes, starts, part(held.vectors), part(held.rows),
                             part(held.begins), column.scale, wanted,
                             {values, held.has_nulls ? bitmap : nullptr, static_cast<std::int64_t>(from)});
  };
  std::int64_t mismatch = -1;
  found.counts = file.hand_out_ranges({held.offsets, held.lengths}, held.checksums, take, mismatch);
  if (mismatch >= 0) found.mismatch = held.numbers[static_cast<std::size_t>(mismatch)];
  return found;
}

}  // namespace bamquery
