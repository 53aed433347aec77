// Content that nobody knows: what a block's first read brought is what all others must bring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/crc32c.hpp"

namespace bamquery {

/// Any thread may ask.
class FirstReads {
 public:
  explicit FirstReads(std::uint64_t blocks) : seen_(blocks) {}

  /// Whether the bytes are those that came first; the first ones always are.
  bool same(std::uint64_t block, std::span<const std::byte> bytes) {
    const std::uint64_t now = kSeen | crc32c(bytes, 0);
    std::uint64_t before = 0;
    // Relaxed: the value is all that is shared.
    return seen_[block].compare_exchange_strong(before, now, std::memory_order_relaxed) || before == now;
  }

 private:
  static constexpr std::uint64_t kSeen = std::uint64_t{1} << 32;

  std::vector<std::atomic<std::uint64_t>> seen_;
};

}  // namespace bamquery
