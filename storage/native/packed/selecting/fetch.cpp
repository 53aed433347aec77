#include "storage/native/packed/selecting/fetch.hpp"

#include <algorithm>
#include <stdexcept>

#include "driver/native/threads/shared_work.hpp"

namespace bamquery {

RowFetch::RowFetch(const BlockFile& file, const StoredPackedColumn& column,
                   std::span<const std::int64_t> rows, std::byte* values, std::uint8_t* bitmap,
                   const RowFetch* before)
    : file_(file), column_(column), rows_(rows) {
  const auto all = static_cast<std::int64_t>(column.vectors.size());
  if (column.rows < 0 || column.bytes < 0 || column.base < 0 ||
      (column.rows + kVectorRows - 1) / kVectorRows != all) {
    throw std::invalid_argument("parameters are not those of so many rows");
  }
  if (!column.checksums.empty() && column.checksums.size() != column.vectors.size()) {
    throw std::invalid_argument("as many checksums as vectors");
  }
  const PackedKind kind = packed_kind(column.kind);
  const std::size_t most = std::min(rows.size(), column.vectors.size());
  for (auto* one : {&numbers_, &counts_, &begins_, &ends_, &offsets_, &lengths_}) one->reserve(most);
  held_.reserve(most);
  checksums_.reserve(column.checksums.empty() ? 0 : most);
  const bool are_known = before != nullptr && before->rows_.data() == rows.data() &&
                         before->rows_.size() == rows.size() && before->column_.rows == column.rows;
  for (std::size_t i = 0; i < rows.size();) {
    if (rows[i] < 0 || rows[i] >= column.rows) throw std::invalid_argument("no such row");
    const std::int64_t number = rows[i] / kVectorRows;
    if (!numbers_.empty() && number <= numbers_.back()) throw std::invalid_argument("rows do not ascend");
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
    if (are_known) {
      i = static_cast<std::size_t>(before->ends_[numbers_.size()]);
    } else {
      // No vector has more; whether they ascend is looked at where they are picked.
      const auto left = std::min(rows.size() - i, static_cast<std::size_t>(count));
      const auto* const from = rows.data() + i;
      i += static_cast<std::size_t>(std::lower_bound(from, from + left, begin + count) - from);
    }
    numbers_.push_back(number);
    held_.push_back(vector);
    counts_.push_back(count);
    begins_.push_back(begin);
    ends_.push_back(static_cast<std::int64_t>(i));
    offsets_.push_back(column.base + start);
    lengths_.push_back(
        static_cast<std::int64_t>(packed_bytes(vector, static_cast<std::uint32_t>(count), kind.width)));
    if (!column.checksums.empty()) checksums_.push_back(column.checksums[at]);
    has_nulls_ |= vector.has_nulls();
  }
  target_ = {values, has_nulls_ ? bitmap : nullptr};
}

std::size_t RowFetch::run_end(std::size_t vector) {
  if (!at_hand_) at_hand_ = file_.are_at_hand(ranges());
  if (!*at_hand_) return vectors();
  while (vector < vectors() && has_nulls_ && rows_before(vector) % 8 != 0) ++vector;
  return vector;
}

FetchedRows RowFetch::read(std::size_t begin, std::size_t end) const {
  FetchedRows found;
  std::vector<std::int64_t> starts;  // of a turn's payloads in its bytes
  const auto take = [&](std::size_t own_first, std::size_t own_end, std::span<const std::byte> bytes) {
    const std::size_t first = begin + own_first, vectors = own_end - own_first;
    starts.assign(vectors, 0);
    for (std::size_t i = 1; i < vectors; ++i) starts[i] = starts[i - 1] + lengths_[first + i - 1];
    const auto from = static_cast<std::size_t>(rows_before(first));
    const auto wanted = rows_.subspan(from, static_cast<std::size_t>(rows_before(first + vectors)) - from);
    const auto part = [&](const auto& of) { return std::span(of).subspan(first, vectors); };
    found.nulls +=
        pick_rows(column_.kind, bytes, starts, part(held_), part(counts_), part(begins_), column_.scale,
                  wanted, {target_.values, target_.bitmap, static_cast<std::int64_t>(from)});
  };
  const auto part = [&](const auto& of) { return std::span(of).subspan(begin, end - begin); };
  const auto checksums = checksums_.empty() ? std::span<const std::uint32_t>{} : part(checksums_);
  std::int64_t mismatch = -1;
  found.counts = file_.hand_out_ranges({part(offsets_), part(lengths_)}, checksums, take, mismatch);
  if (mismatch >= 0) found.mismatch = numbers_[begin + static_cast<std::size_t>(mismatch)];
  return found;
}

namespace {

// Vectors that are worth another thread.
constexpr std::int64_t kLeastVectors = 64;

}  // namespace

FetchedRows fetch_packed_rows(const BlockFile& file, const StoredPackedColumn& column,
                              std::span<const std::int64_t> rows, std::byte* values, std::uint8_t* bitmap) {
  RowFetch fetch(file, column, rows, values, bitmap);
  const auto vectors = static_cast<std::int64_t>(fetch.vectors());
  const std::int64_t parts = worth_parts(vectors, kLeastVectors);
  std::vector<std::size_t> ends;
  for (std::int64_t part = 1; part < parts; ++part) {
    const std::size_t end = fetch.run_end(static_cast<std::size_t>(vectors * part / parts));
    if (end < fetch.vectors() && (ends.empty() || end > ends.back())) ends.push_back(end);
  }
  ends.push_back(fetch.vectors());
  if (ends.size() == 1) return fetch.read(0, ends[0]);
  std::vector<FetchedRows> runs(ends.size());
  share_parts(static_cast<std::int64_t>(ends.size()), [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    runs[at] = fetch.read(at == 0 ? 0 : ends[at - 1], ends[at]);
  });
  FetchedRows found;
  for (const FetchedRows& run : runs) {
    found.nulls += run.nulls;
    if (found.mismatch < 0) found.mismatch = run.mismatch;
  }
  found.counts = fetch.count();  // of which two runs may have read the same
  return found;
}

}  // namespace bamquery
