#include "storage/native/packed/selecting/fetch.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "driver/native/threads/shared_work.hpp"
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

// Vectors that are worth another thread.
constexpr std::int64_t kLeastVectors = 64;

// Where runs of vectors end that several threads can take: with a byte of the bitmap, if it is written to.
// There is one of a file whose reads have to be waited for.
std::vector<std::size_t> find_parts(const Held& held, const BlockFile& file) {
  const std::size_t vectors = held.numbers.size();
  std::int64_t parts = worth_parts(static_cast<std::int64_t>(vectors), kLeastVectors);
  if (parts > 1 && !file.are_at_hand({held.offsets, held.lengths})) parts = 1;
  std::vector<std::size_t> ends;
  for (std::int64_t part = 1; part < parts; ++part) {
    std::size_t end = vectors * static_cast<std::size_t>(part) / static_cast<std::size_t>(parts);
    while (end < vectors && held.has_nulls && held.ends[end - 1] % 8 != 0) ++end;
    if (end < vectors && (ends.empty() || end > ends.back())) ends.push_back(end);
  }
  ends.push_back(vectors);
  return ends;
}

// The rows in vectors [begin, end).
FetchedRows fetch_part(const BlockFile& file, const StoredPackedColumn& column, const Held& held,
                       std::span<const std::int64_t> rows, const PickTarget& target, std::size_t begin,
                       std::size_t end) {
  FetchedRows found;
  std::vector<std::int64_t> starts;  // of a turn's payloads in its bytes
  const auto take = [&](std::size_t own_first, std::size_t own_end, std::span<const std::byte> bytes) {
    const std::size_t first = begin + own_first, vectors = own_end - own_first;
    starts.assign(vectors, 0);
    for (std::size_t i = 1; i < vectors; ++i) starts[i] = starts[i - 1] + held.lengths[first + i - 1];
    const auto from = static_cast<std::size_t>(first == 0 ? 0 : held.ends[first - 1]);
    const auto wanted = rows.subspan(from, static_cast<std::size_t>(held.ends[first + vectors - 1]) - from);
    const auto part = [&](const auto& of) { return std::span(of).subspan(first, vectors); };
    found.nulls +=
        pick_rows(column.kind, bytes, starts, part(held.vectors), part(held.rows), part(held.begins),
                  column.scale, wanted, {target.values, target.bitmap, static_cast<std::int64_t>(from)});
  };
  const auto part = [&](const auto& of) { return std::span(of).subspan(begin, end - begin); };
  const auto checksums = held.checksums.empty() ? std::span<const std::uint32_t>{} : part(held.checksums);
  std::int64_t mismatch = -1;
  found.counts = file.hand_out_ranges({part(held.offsets), part(held.lengths)}, checksums, take, mismatch);
  if (mismatch >= 0) found.mismatch = held.numbers[begin + static_cast<std::size_t>(mismatch)];
  return found;
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
  const PickTarget target{values, held.has_nulls ? bitmap : nullptr};
  const RangeItems ranges{held.offsets, held.lengths};
  const std::vector<std::size_t> ends = find_parts(held, file);
  if (ends.size() == 1) return fetch_part(file, column, held, rows, target, 0, ends[0]);
  std::vector<FetchedRows> parts(ends.size());
  share_parts(static_cast<std::int64_t>(ends.size()), [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    parts[at] = fetch_part(file, column, held, rows, target, at == 0 ? 0 : ends[at - 1], ends[at]);
  });
  FetchedRows found;
  for (const FetchedRows& part : parts) {
    found.nulls += part.nulls;
    if (found.mismatch < 0) found.mismatch = part.mismatch;
  }
  found.counts = count_blocks(ranges, file.block_size());  // of which two parts may have read the same
  return found;
}

}  // namespace bamquery
