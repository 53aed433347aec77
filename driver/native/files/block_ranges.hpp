// Which blocks byte ranges touch: counting them, and cutting them into read commands.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace bamquery {

/// What reads cost: commands, and the distinct blocks they covered.
struct ReadCounts {
  std::int64_t commands = 0;
  std::int64_t blocks = 0;
};

/// Byte ranges as two arrays.
struct RangeItems {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> lengths;

  std::size_t size() const { return offsets.size(); }
  std::int64_t offset(std::size_t i) const { return offsets[i]; }
  std::int64_t length(std::size_t i) const { return lengths[i]; }
};

/// `width` bytes at `base + row * stride` for each row.
struct RowItems {
  std::int64_t base;
  std::int64_t stride;
  std::int64_t width;
  std::span<const std::int64_t> rows;

  std::size_t size() const { return rows.size(); }
  std::int64_t offset(std::size_t i) const { return base + rows[i] * stride; }
  std::int64_t length(std::size_t /*i*/) const { return width; }
};

/// The byte of a bitmap at `base` that holds each row's bit.
struct BitItems {
  std::int64_t base;
  std::span<const std::int64_t> rows;

  std::size_t size() const { return rows.size(); }
  std::int64_t offset(std::size_t i) const { return base + (rows[i] >> 3); }
  std::int64_t length(std::size_t /*i*/) const { return 1; }
};

/// A run of blocks read by one command, and the items [first_item, end_item) that touch it.
struct Command {
  std::int64_t offset;
  std::int64_t length;
  std::size_t first_item;
  std::size_t end_item;
};

/// Throws std::invalid_argument unless the items ascend and lie within `size` bytes.
template <typename Items>
void check_items(const Items& items, std::int64_t size) {
  bool fine = true;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t offset = items.offset(i);
    const std::int64_t length = items.length(i);
    fine &= offset >= before && length >= 0 && length <= size && offset <= size - length;
    before = offset;
  }
  if (!fine) throw std::invalid_argument("reads must ascend and lie within the file");
}

/// Numbers of blocks, which nearly always have a power of two bytes: a shift takes a twentieth of a division.
class BlockNumbers {
 public:
  explicit BlockNumbers(std::int64_t block_size)
      : size_(block_size),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(block_size))
                   ? std::countr_zero(static_cast<std::uint64_t>(block_size))
                   : -1) {}

  /// Of the block that holds the byte at `offset`, which is not negative.
  std::int64_t of(std::int64_t offset) const { return shift_ >= 0 ? offset >> shift_ : offset / size_; }

 private:
  std::int64_t size_;
  int shift_;
};

/// Calls `add(first_block, last_block, first_item, end_item)` for each maximal run of consecutive blocks.
template <typename Items, typename Add>
void for_each_run(const Items& items, std::int64_t block_size, Add&& add) {
  const BlockNumbers number(block_size);
  std::int64_t first = 0;
  std::int64_t last = -2;    // no block follows on it
  std::int64_t covered = 0;  // the byte behind the run so far: most items of dense rows end before it
  std::size_t first_item = 0;
  std::size_t end_item = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t length = items.length(i);
    if (length == 0) continue;
    const std::int64_t offset = items.offset(i);
    if (offset + length > covered) {
      const std::int64_t start = number.of(offset);
      if (start > last + 1) {
        if (last >= 0) add(first, last, first_item, end_item);
        first = start;
        first_item = i;
      }
      last = number.of(offset + length - 1);
      covered = (last + 1) * block_size;
    }
    end_item = i + 1;
  }
  if (last >= 0) add(first, last, first_item, end_item);
}

/// Distinct blocks that items touch, and the runs they form.
template <typename Items>
ReadCounts count_blocks(const Items& items, std::int64_t block_size) {
  ReadCounts counts;
  for_each_run(items, block_size, [&](std::int64_t first, std::int64_t last, std::size_t, std::size_t) {
    ++counts.commands;
    counts.blocks += last - first + 1;
  });
  return counts;
}

/// The commands that read all items: one a run, or several where a run is longer than `limit` bytes.
template <typename Items>
std::vector<Command> cut_commands(const Items& items, std::int64_t block_size, std::int64_t limit) {
  std::vector<Command> commands;
  for_each_run(items, block_size,
               [&](std::int64_t first, std::int64_t last, std::size_t item, std::size_t end) {
                 const std::int64_t run_end = (last + 1) * block_size;
                 for (std::int64_t at = first * block_size; at < run_end; at += limit) {
                   const std::int64_t stop = std::min(at + limit, run_end);
                   while (items.offset(item) + items.length(item) <= at) ++item;  // ends before this command
                   std::size_t end_item = item;
                   while (end_item < end && items.offset(end_item) < stop) ++end_item;
                   commands.push_back({at, stop - at, item, end_item});
                 }
               });
  return commands;
}

}  // namespace bamquery
