#include "engine/native/columns/append.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver/native/threads/shared_work.hpp"

namespace bamquery {
namespace {

// Bytes of values, and rows of strings, that are worth another thread.
constexpr std::int64_t kLeastBytes = 1 << 19, kLeastStrings = 1 << 15;
// Rows whose bits are those of no other thread's words.
constexpr std::int64_t kBlock = 1024;

// Rows of one of several columns: in it from `first` on, and of all from `row` on.
struct Piece {
  std::size_t column;
  std::int64_t first;
  std::int64_t count;
  std::int64_t row;
};

// Where each column's rows begin among all; their number last.
template <typename RowsOf>
std::vector<std::int64_t> rows_before(std::size_t columns, RowsOf&& rows_of) {
  std::vector<std::int64_t> before{0};
  for (std::size_t c = 0; c < columns; ++c) before.push_back(before.back() + rows_of(c));
  return before;
}

// The pieces that [row, row + count) of all rows are of.
template <typename Use>
void each_piece(std::span<const std::int64_t> before, std::int64_t row, std::int64_t count, Use&& use) {
  const auto next = std::upper_bound(before.begin(), before.end(), row);
  auto column = static_cast<std::size_t>(next - before.begin()) - 1;
  const std::int64_t end = row + count;
  for (; row < end; ++column) {
    const std::int64_t stop = std::min(end, before[column + 1]);
    if (stop > row) use(Piece{column, row - before[column], stop - row, row});
    row = std::max(row, stop);
  }
}

void append_bits(Bits valid, const Piece& piece, std::uint8_t* bitmap) {
  copy_bits({valid.data, valid.offset + piece.first}, piece.count, bitmap, piece.row);
}

}  // namespace

void append_values(std::span<const FixedColumn> columns, std::byte* values, std::uint8_t* bitmap) {
  const std::vector<std::int64_t> before =
      rows_before(columns.size(), [&](std::size_t c) { return columns[c].rows; });
  const std::int64_t rows = before.back();
  const std::int64_t width = columns.front().bits / 8;
  share_items(rows, worth_parts(rows * width, kLeastBytes), kBlock,
              [&](std::int64_t, std::int64_t first, std::int64_t count) {
                each_piece(before, first, count, [&](const Piece& piece) {
                  const FixedColumn& column = columns[piece.column];
                  std::memcpy(values + piece.row * width, column.values + piece.first * width,
                              static_cast<std::size_t>(piece.count * width));
                  if (bitmap != nullptr) append_bits(column.valid, piece, bitmap);
                });
              });
}

std::vector<std::int64_t> bytes_before(std::span<const GivenStrings> columns) {
  std::vector<std::int64_t> before{0};
  for (const GivenStrings& column : columns) {
    const std::int64_t from = column.offsets.front(), to = column.offsets.back();
    if (from < 0 || from > to || static_cast<std::uint64_t>(to) > column.data.size()) return {};
    before.push_back(before.back() + to - from);
  }
  return before;
}

bool append_strings(std::span<const GivenStrings> columns, std::span<const std::int64_t> before,
                    std::int64_t* offsets, std::byte* data, std::uint8_t* bitmap) {
  const std::vector<std::int64_t> rows_of = rows_before(columns.size(), [&](std::size_t c) {
    return static_cast<std::int64_t>(columns[c].offsets.size()) - 1;
  });
  const std::int64_t rows = rows_of.back();
  std::atomic<bool> all_ascend = true;
  const std::int64_t parts = worth_parts(rows + before.back() / 8, kLeastStrings);
  share_items(rows, parts, kBlock, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    each_piece(rows_of, first, count, [&](const Piece& piece) {
      const GivenStrings& column = columns[piece.column];
      const auto own = column.offsets.subspan(static_cast<std::size_t>(piece.first),
                                              static_cast<std::size_t>(piece.count) + 1);
      const std::int64_t moved = before[piece.column] - column.offsets.front();
      bool ascend = own.front() >= column.offsets.front() && own.back() <= column.offsets.back();
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ascend &= own[at] <= own[at + 1];
        offsets[piece.row + i] = own[at] + moved;
      }
      if (!ascend) {
        all_ascend = false;
        return;
      }
      const auto bytes = static_cast<std::size_t>(own.back() - own.front());
      if (bytes != 0) std::memcpy(data + own.front() + moved, column.data.data() + own.front(), bytes);
      if (bitmap != nullptr) append_bits(column.valid, piece, bitmap);
    });
  });
  offsets[rows] = before.back();
  return all_ascend;
}

}  // namespace bamquery
