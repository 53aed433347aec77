#include "engine/native/keys/grouping/range_grouping.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "driver/native/unset_vector.hpp"
#include "engine/native/keys/grouping/key_words.hpp"
#include "engine/native/keys/grouping/leader_rows.hpp"
#include "engine/native/keys/grouping/number_table.hpp"
#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

using Leaders = std::vector<std::int64_t>;

// Ranges of hashes for each share, so that one with more rows than others is no hindrance; at most so many.
constexpr std::uint64_t kRangesEach = 4, kMostRanges = 128;

// A row whose key is in some range, what tells the key apart, and the first row that has it.
struct RangeRow {
  std::uint64_t tag;
  std::uint32_t row;
  std::uint32_t leader;
};

// Memory for the rows of a share, which its ranges take in pieces.
class RangeMemory {
 public:
  static constexpr std::int64_t kPiece = 256;
  static_assert(kPiece <= kBlockRows);

  // How many rows it must have for so many, in so many ranges.
  static std::int64_t size_for(std::int64_t rows, std::uint64_t ranges) {
    return rows + static_cast<std::int64_t>(ranges) * kPiece;
  }

  RangeMemory() = default;
  explicit RangeMemory(RangeRow* first) : next_(first) {}
  RangeRow* take() { return std::exchange(next_, next_ + kPiece); }

 private:
  RangeRow* next_ = nullptr;
};

// Those of one range and share, in order.
class RangeRows {
 public:
  void add(std::uint64_t tag, std::int64_t row, RangeMemory& memory) {
    if (next_ == end_) {
      next_ = pieces_.emplace_back(memory.take());
      end_ = next_ + RangeMemory::kPiece;
    }
    *next_++ = {tag, static_cast<std::uint32_t>(row), 0};
  }

  std::int64_t size() const {
    return static_cast<std::int64_t>(pieces_.size()) * RangeMemory::kPiece - (end_ - next_);
  }

  template <typename Use>
  void each(Use&& use) const {
    for (RangeRow* const piece : pieces_) {
      const std::int64_t count = piece == pieces_.back() ? next_ - piece : RangeMemory::kPiece;
      use(std::span(piece, static_cast<std::size_t>(count)));
    }
  }

 private:
  std::vector<RangeRow*> pieces_;
  RangeRow *next_ = nullptr, *end_ = nullptr;
};

// Of all shares, each with so many ranges.
using Ranges = std::vector<std::vector<RangeRows>>;

std::int64_t rows_of(const Ranges& shares, std::size_t range) {
  std::int64_t rows = 0;
  for (const auto& share : shares) rows += share[range].size();
  return rows;
}

template <typename Use>
void each_piece(const Ranges& shares, std::size_t range, Use&& use) {
  for (const auto& share : shares) share[range].each(use);
}

// Leaders of a range by a table of its own.
template <typename Keys>
void find_leaders(const Keys& keys, const Ranges& shares, std::size_t range) {
  const std::int64_t all = rows_of(shares, range);
  if (all == 0) return;
  NumberTable table(all);
  std::uint64_t held = 0;
  std::int64_t seen = 0;
  each_piece(shares, range, [&](std::span<RangeRow> rows) {
    table.reserve_block(held, seen, all, [&](std::uint64_t tag) { return keys.hash(tag); });
    const bool ahead = table.is_large();
    constexpr auto kAhead = static_cast<std::size_t>(NumberTable::kAhead);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (ahead && i + kAhead < rows.size()) table.prefetch(keys.hash(rows[i + kAhead].tag));
      RangeRow& row = rows[i];
      NumberTable::Slot& slot = table.find(
          keys.hash(row.tag), row.tag, [&](std::uint32_t leader) { return keys.are_same(row.row, leader); });
      if (slot.number == 0) {
        ++held;
        slot = {row.tag, row.row + 1};
      }
      row.leader = slot.number - 1;
    }
    seen += static_cast<std::int64_t>(rows.size());
  });
}

// Keys with a code each.
class CodedKeys {
 public:
  CodedKeys(const RowCodes& row_codes, std::span<const KeyColumn> columns)
      : row_codes_(row_codes), columns_(columns) {}

  auto reader() const {
    return [this](std::int64_t start, std::int64_t count, std::uint64_t* tags) {
      row_codes_.encode_own(columns_, start, count, tags);
    };
  }

  std::uint64_t hash(std::uint64_t tag) const { return hash_word(tag); }
  bool are_same(std::int64_t, std::int64_t) const { return true; }

 private:
  const RowCodes& row_codes_;
  std::span<const KeyColumn> columns_;
};

// Keys of several words, of which there is a hash.
class HashedKeys {
 public:
  explicit HashedKeys(std::span<const KeyColumn> columns) : keys_(columns) {}

  auto reader() const {
    return [this, words = std::vector<std::uint64_t>(static_cast<std::size_t>(kBlockRows) * keys_.size())](
               std::int64_t start, std::int64_t count, std::uint64_t* tags) mutable {
      keys_.read(start, count, words.data());
      keys_.hash(words.data(), count, tags);
    };
  }

  std::uint64_t hash(std::uint64_t tag) const { return tag; }
  bool are_same(std::int64_t one, std::int64_t other) const { return keys_.are_same(one, other); }

 private:
  KeyWords keys_;
};

// Rows are dealt out by ranges of hashes, of which each is looked at by one thread, row after row.
template <typename Keys>
Leaders number_by_ranges(const Keys& keys, std::int64_t rows, std::int64_t shares, std::int32_t* codes) {
  const std::uint64_t ranges =
      std::min(std::bit_ceil(kRangesEach * static_cast<std::uint64_t>(shares)), kMostRanges);
  const int shift = 64 - std::countr_zero(ranges);
  const std::int64_t waste = RangeMemory::size_for(0, ranges);
  UnsetVector<RangeRow> memory(static_cast<std::size_t>(rows + shares * waste));
  Ranges dealt(static_cast<std::size_t>(shares));
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::vector<RangeRows> own(ranges);
    RangeMemory pieces(memory.data() + first + share * waste);
    auto read = keys.reader();
    std::array<std::uint64_t, kBlockRows> tags;
    for (std::int64_t start = first; start < first + count; start += kBlockRows) {
      const std::int64_t block = std::min(kBlockRows, first + count - start);
      read(start, block, tags.data());
      for (std::int64_t i = 0; i < block; ++i) {
        const std::uint64_t tag = tags[static_cast<std::size_t>(i)];
        own[keys.hash(tag) >> shift].add(tag, start + i, pieces);
      }
    }
    dealt[static_cast<std::size_t>(share)] = std::move(own);
  });
  share_parts(static_cast<std::int64_t>(ranges),
              [&](std::int64_t range) { find_leaders(keys, dealt, static_cast<std::size_t>(range)); });
  return number_leaders(rows, shares, codes, [&](std::int64_t share, std::int64_t, std::int64_t) {
    for (const RangeRows& own : dealt[static_cast<std::size_t>(share)]) {
      own.each([&](std::span<const RangeRow> some) {
        for (const RangeRow& row : some) codes[row.row] = static_cast<std::int32_t>(row.leader);
      });
    }
  });
}

}  // namespace

std::vector<std::int64_t> number_by_codes(const RowCodes& row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, std::int64_t shares, std::int32_t* codes) {
  return number_by_ranges(CodedKeys(row_codes, columns), rows, shares, codes);
}

std::vector<std::int64_t> number_by_hashes(std::span<const KeyColumn> columns, std::int64_t rows,
                                           std::int64_t shares, std::int32_t* codes) {
  return number_by_ranges(HashedKeys(columns), rows, shares, codes);
}

}  // namespace bamquery
