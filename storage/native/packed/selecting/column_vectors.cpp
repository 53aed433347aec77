#include "storage/native/packed/selecting/column_vectors.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bamquery {

ColumnVectors::ColumnVectors(const BlockFile& file, const StoredPackedColumn& column,
                             std::span<const std::int64_t> candidates, std::size_t most, bool kept)
    : file_(file), column_(column), candidates_(candidates), kept_(kept), places_(most, kUnread) {
  const PackedKind kind = packed_kind(column.kind);
  const auto count = static_cast<std::int64_t>(column.vectors.size());
  for (auto* one : {&offsets_, &lengths_, &rows_}) one->reserve(candidates.size());
  std::int64_t before = -1;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::int64_t number = candidates[i];
    if (number <= before || number >= count) throw std::invalid_argument("no such vector");
    before = number;
    const PackedVector& vector = column.vectors[static_cast<std::size_t>(number)];
    const std::int64_t rows = std::min(kVectorRows, column.rows - number * kVectorRows);
    const auto start = static_cast<std::int64_t>(vector.payload_start());
    const PackedFault fault =
        start > column.bytes ? PackedFault::kPayload
                             : packed_fault(vector, kind.type, static_cast<std::uint32_t>(rows), kind.width,
                                            static_cast<std::uint64_t>(column.bytes - start));
    if (fault != PackedFault::kNone) throw_packed_fault(number, fault);
    offsets_.push_back(column.base + start);
    lengths_.push_back(
        static_cast<std::int64_t>(packed_bytes(vector, static_cast<std::uint32_t>(rows), kind.width)));
    rows_.push_back(rows);
    size_ += lengths_.back();
  }
  std::int64_t turn = 0;
  if (!kept) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      sum += lengths_[i] - (i >= most ? lengths_[i - most] : 0);
      turn = std::max(turn, sum);
    }
  }
  buffer_bytes_ = static_cast<std::size_t>(kept ? size_ : turn) + kCodeSlack;
}

bool ColumnVectors::is_at_hand() {
  if (!at_hand_) at_hand_ = file_.are_at_hand({offsets_, lengths_});
  return *at_hand_;
}

void ColumnVectors::expect_all() {
  if (is_at_hand()) return;
  file_.expect_ranges({offsets_, lengths_});
  at_hand_ = true;
}

void ColumnVectors::begin_turn(std::size_t first) {
  first_ = first;
  std::ranges::fill(places_, kUnread);
  if (!kept_) used_ = 0;
}

bool ColumnVectors::load(std::span<const std::uint32_t> turn, LoadedVectors& out) {
  missing_.clear();
  for (const std::uint32_t place : turn) {
    if (places_[place] == kUnread) missing_.push_back(place);
  }
  if (!missing_.empty()) read(missing_);
  if (mismatch_ >= 0) return false;
  out.payload = {buffer_.data(), buffer_.size()};
  out.starts.clear();
  out.vectors.clear();
  out.rows.clear();
  for (const std::uint32_t place : turn) {
    const std::size_t candidate = first_ + place;
    out.starts.push_back(places_[place]);
    out.vectors.push_back(column_.vectors[static_cast<std::size_t>(candidates_[candidate])]);
    out.rows.push_back(rows_[candidate]);
  }
  return true;
}

void ColumnVectors::read(std::span<const std::uint32_t> missing) {
  asked_.clear();
  asked_lengths_.clear();
  asked_checksums_.clear();
  const std::size_t begin = used_;
  for (const std::uint32_t place : missing) {
    const std::size_t candidate = first_ + place;
    places_[place] = static_cast<std::int64_t>(used_);
    used_ += static_cast<std::size_t>(lengths_[candidate]);
    asked_.push_back(offsets_[candidate]);
    asked_lengths_.push_back(lengths_[candidate]);
    if (!column_.checksums.empty()) {
      asked_checksums_.push_back(column_.checksums[static_cast<std::size_t>(candidates_[candidate])]);
    }
    read_.push_back(candidates_[candidate]);
    read_offsets_.push_back(offsets_[candidate]);
    read_lengths_.push_back(lengths_[candidate]);
  }
  // Payloads stay where they are. Memory that is not written to is none.
  if (buffer_.capacity() == 0) buffer_.reserve(buffer_bytes_);
  // The slack behind the last payload is loaded with its codes, whatever it is.
  buffer_.resize(std::max(buffer_.size(), used_ + kCodeSlack));
  const RangeItems ranges{asked_, asked_lengths_};
  if (!is_at_hand()) file_.expect_ranges(ranges);
  std::int64_t differs = -1;
  file_.read_expected(ranges, asked_checksums_, buffer_.data() + begin, differs);
  if (differs >= 0) mismatch_ = candidates_[first_ + missing[static_cast<std::size_t>(differs)]];
}

bool ColumnVectors::read_all(std::byte* target, ReadCounts& counts) {
  std::vector<std::uint32_t> checksums;
  if (!column_.checksums.empty()) {
    checksums.reserve(candidates_.size());
    for (const std::int64_t number : candidates_) {
      checksums.push_back(column_.checksums[static_cast<std::size_t>(number)]);
    }
  }
  std::int64_t differs = -1;
  counts = file_.read_ranges({offsets_, lengths_}, checksums, target, differs);
  read_offsets_ = offsets_;
  read_lengths_ = lengths_;
  if (differs >= 0) mismatch_ = candidates_[static_cast<std::size_t>(differs)];
  return differs < 0;
}

namespace {

ReadCounts count_reads(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths,
                       std::int64_t block_size) {
  if (std::ranges::is_sorted(offsets)) return count_blocks(RangeItems{offsets, lengths}, block_size);
  // Within a turn some were read after others behind them.
  std::vector<std::size_t> order(offsets.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return offsets[i]; });
  std::vector<std::int64_t> sorted_offsets, sorted_lengths;
  for (const std::size_t i : order) {
    sorted_offsets.push_back(offsets[i]);
    sorted_lengths.push_back(lengths[i]);
  }
  return count_blocks(RangeItems{sorted_offsets, sorted_lengths}, block_size);
}

}  // namespace

ReadCounts ColumnVectors::count() const {
  return count_reads(read_offsets_, read_lengths_, file_.block_size());
}

ReadCounts ColumnVectors::count(std::span<const ColumnVectors* const> parts) {
  if (parts.size() == 1) return parts[0]->count();
  std::vector<std::int64_t> offsets, lengths;
  for (const ColumnVectors* part : parts) {
    offsets.insert(offsets.end(), part->read_offsets_.begin(), part->read_offsets_.end());
    lengths.insert(lengths.end(), part->read_lengths_.begin(), part->read_lengths_.end());
  }
  return count_reads(offsets, lengths, parts[0]->file_.block_size());
}

void ColumnVectors::copy_payload(std::byte* target) const {
  if (used_ > 0) std::memcpy(target, buffer_.data(), used_);
}

UnsetVector<std::byte> ColumnVectors::take_payload() {
  buffer_.resize(used_);
  return std::move(buffer_);
}

}  // namespace bamquery
