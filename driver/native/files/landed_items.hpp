// What comes out of landed blocks: items copied to where their caller wants them, and checked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "driver/native/crc32c.hpp"
#include "driver/native/files/block_ranges.hpp"

namespace bamquery {

// Where in the target dense items go: items of one width, or of many.
struct FixedTarget {
  std::byte* base;
  std::int64_t width;
  std::byte* operator[](std::size_t i) const { return base + static_cast<std::int64_t>(i) * width; }
};
struct RangeTarget {
  RangeTarget(const RangeItems& ranges, std::byte* base) {
    starts.reserve(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); base += ranges.length(i++)) starts.push_back(base);
  }
  std::byte* operator[](std::size_t i) const { return starts[i]; }
  std::vector<std::byte*> starts;
};

/// Copies a command's items, or what it has of them, from where its blocks landed.
template <typename Items, typename Target>
void copy_items(const Items& items, const Target& target, const Command& command, const std::byte* landed) {
  for (std::size_t i = command.first_item; i < command.end_item; ++i) {
    const std::int64_t begin = std::max(items.offset(i), command.offset);
    const std::int64_t end = std::min(items.offset(i) + items.length(i), command.offset + command.length);
    if (end <= begin) continue;
    std::memcpy(target[i] + (begin - items.offset(i)), landed + (begin - command.offset),
                static_cast<std::size_t>(end - begin));
  }
}

/// Compares the CRC-32C of each range once all commands with a piece of it have landed, in any order.
class RangeVerifier {
 public:
  /// No `checksums`: compares nothing.
  RangeVerifier(const RangeItems& ranges, const RangeTarget& target, std::span<const std::uint32_t> checksums,
                std::span<const Command> commands)
      : ranges_(ranges), target_(target), checksums_(checksums), pieces_(checksums.size()) {
    if (checksums_.empty()) return;
    for (const Command& command : commands) {
      for (std::size_t i = command.first_item; i < command.end_item; ++i) ++pieces_[i];
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == 0) check(i);  // empty ranges
    }
  }

  void landed(const Command& command) {
    if (checksums_.empty()) return;
    for (std::size_t i = command.first_item; i < command.end_item; ++i) {
      if (--pieces_[i] == 0) check(i);
    }
  }

  /// The first range that differs, or -1.
  std::int64_t mismatch() const { return mismatch_; }

 private:
  void check(std::size_t i) {
    if (crc32c({target_[i], static_cast<std::size_t>(ranges_.length(i))}) == checksums_[i]) return;
    const auto found = static_cast<std::int64_t>(i);
    mismatch_ = mismatch_ < 0 ? found : std::min(mismatch_, found);
  }

  const RangeItems& ranges_;
  const RangeTarget& target_;
  std::span<const std::uint32_t> checksums_;
  std::vector<std::int32_t> pieces_;  ///< Of each range: commands that have not landed.
  std::int64_t mismatch_ = -1;
};

}  // namespace bamquery
