// Blocks that one read has brought, for the reads that follow it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "driver/native/files/block_ranges.hpp"

namespace bamquery {

/// What gathers of one caller from one file have read, so that none reads a block again. For one thread.
class HeldBlocks {
 public:
  /// Numbers of the distinct blocks that items touch and that are not held, ascending. `file` is what says
  /// whose blocks these are: std::invalid_argument where others are held.
  template <typename Items>
  std::vector<std::int64_t> missing(const void* file, const Items& items, std::int64_t block_size) {
    if (file_ == nullptr) file_ = file;
    if (file_ != file) throw std::invalid_argument("blocks of another file are held");
    std::vector<std::int64_t> found;
    std::size_t at = 0;
    for_each_run(items, block_size, [&](std::int64_t first, std::int64_t last, std::size_t, std::size_t) {
      for (std::int64_t block = first; block <= last; ++block) {
        while (at < held_.size() && held_[at].number < block) ++at;
        if (at == held_.size() || held_[at].number != block) found.push_back(block);
      }
    });
    return found;
  }

  /// Holds blocks that were missing, whose bytes lie end to end in `bytes`; null where nobody asks for bytes.
  void add(const std::vector<std::int64_t>& blocks, std::unique_ptr<std::byte[]> bytes,
           std::int64_t block_size) {
    const std::size_t before = held_.size();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      held_.push_back({blocks[i], bytes ? bytes.get() + static_cast<std::int64_t>(i) * block_size : nullptr});
    }
    std::inplace_merge(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(before), held_.end(),
                       [](const Held& a, const Held& b) { return a.number < b.number; });
    if (bytes) memory_.push_back(std::move(bytes));
  }

  /// Copies items, all of whose blocks are held with their bytes.
  void copy(const RowItems& items, std::int64_t block_size, std::byte* target) const {
    const BlockNumbers number(block_size);
    std::size_t first = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::int64_t offset = items.offset(i);
      const std::int64_t end = offset + items.length(i);
      while (held_[first].number < number.of(offset)) ++first;
      for (std::size_t at = first; offset < end; ++at) {
        const std::int64_t within = offset - held_[at].number * block_size;
        const std::int64_t bytes = std::min(end - offset, block_size - within);
        std::memcpy(target, held_[at].bytes + within, static_cast<std::size_t>(bytes));
        target += bytes;
        offset += bytes;
      }
    }
  }

 private:
  struct Held {
    std::int64_t number;
    const std::byte* bytes;
  };

  const void* file_ = nullptr;
  std::vector<Held> held_;  ///< Ascending.
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// Whole blocks by their numbers.
inline RowItems whole_blocks(const std::vector<std::int64_t>& blocks, std::int64_t block_size) {
  return {0, block_size, block_size, blocks};
}

}  // namespace bamquery
