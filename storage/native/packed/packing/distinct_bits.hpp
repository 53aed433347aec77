// The distinct values among up to 1,024, by their bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "storage/core/packed_vector.hpp"

namespace bamquery {

/// A set of up to 1,024 numbers of 64 bits, each with the place at which it was added.
class DistinctBits {
 public:
  void clear() {
    size_ = 0;
    slots_.fill(0);
  }

  std::uint32_t size() const { return size_; }
  std::uint64_t value(std::uint32_t place) const { return values_[place]; }

  /// The place of `bits`, which are added if they are new.
  std::uint32_t add(std::uint64_t bits) {
    std::uint32_t slot = static_cast<std::uint32_t>((bits * 0x9E3779B97F4A7C15) >> 53);
    for (; slots_[slot] != 0; slot = (slot + 1) % kSlots) {
      if (values_[slots_[slot] - 1u] == bits) return slots_[slot] - 1u;
    }
    values_[size_] = bits;
    slots_[slot] = static_cast<std::uint16_t>(++size_);
    return size_ - 1;
  }

  /// Orders the values ascending; `ranks[place]` is where one is then, `value(rank)` what it is.
  void sort(std::array<std::uint16_t, kPackedVectorRows>& ranks) {
    std::array<std::uint16_t, kPackedVectorRows> order;
    std::iota(order.begin(), order.begin() + size_, std::uint16_t{0});
    std::sort(order.begin(), order.begin() + size_,
              [&](std::uint16_t a, std::uint16_t b) { return values_[a] < values_[b]; });
    std::array<std::uint64_t, kPackedVectorRows> sorted;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      ranks[order[rank]] = static_cast<std::uint16_t>(rank);
      sorted[rank] = values_[order[rank]];
    }
    std::copy(sorted.begin(), sorted.begin() + size_, values_.begin());
    // Places are others now: nothing is added before the next clear().
  }

 private:
  static constexpr std::uint32_t kSlots = 2 * kPackedVectorRows;

  std::uint32_t size_ = 0;
  std::array<std::uint64_t, kPackedVectorRows> values_;
  std::array<std::uint16_t, kSlots> slots_{};  // places from 1 on; 0 is empty
};

}  // namespace bamquery
