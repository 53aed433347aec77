// Arrow bitmaps: least significant bit first, any bit offset.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bamquery {

/// A read-only bitmap that starts `offset` bits behind `data`; a null `data` means that all bits are set.
struct Bits {
  const std::uint8_t* data = nullptr;
  std::int64_t offset = 0;

  bool all_set() const { return data == nullptr; }

  bool operator[](std::int64_t index) const {
    const std::int64_t bit = offset + index;
    return data == nullptr || ((data[bit >> 3] >> (bit & 7)) & 1) != 0;
  }

  /// Bits [index, index + count) as a word, count at most 64; reads no byte beyond those that hold them.
  std::uint64_t word(std::int64_t index, int count) const {
    const std::uint64_t mask = count == 64 ? ~0ULL : (1ULL << count) - 1;
    if (data == nullptr) return mask;
    const std::int64_t bit = offset + index;
    const auto shift = static_cast<int>(bit & 7);
    std::uint64_t low;
    if (shift == 0 && count == 64) {  // nearly all of them: a copy of a known size is one load
      std::memcpy(&low, data + (bit >> 3), sizeof low);
      return low;
    }
    const std::size_t bytes = static_cast<std::size_t>(shift + count + 7) / 8;
    std::uint8_t raw[9] = {};
    std::memcpy(raw, data + (bit >> 3), bytes);
    std::memcpy(&low, raw, sizeof low);
    if (shift == 0) return low & mask;
    return ((low >> shift) | (static_cast<std::uint64_t>(raw[8]) << (64 - shift))) & mask;
  }
};

/// Copies `count` bits and returns how many are set. Bits of `target` outside the range keep their value.
inline std::int64_t copy_bits(Bits source, std::int64_t count, std::uint8_t* target,
                              std::int64_t target_bit) {
  std::int64_t set = 0;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t bit = target_bit + done;
    const auto shift = static_cast<int>(bit & 7);
    const auto take = static_cast<int>(std::min<std::int64_t>(count - done, shift == 0 ? 64 : 8 - shift));
    const std::uint64_t word = source.word(done, take);
    set += std::popcount(word);
    std::uint8_t* at = target + (bit >> 3);
    if (take == 64) {
      std::memcpy(at, &word, sizeof word);
    } else {
      for (int moved = 0; moved < take;) {  // byte by byte: at most eight
        const int start = moved == 0 ? shift : 0;
        const int bits = std::min(8 - start, take - moved);
        const auto mask = static_cast<std::uint8_t>(((1U << bits) - 1U) << start);
        const auto value = static_cast<std::uint8_t>((word >> moved) << start);
        *at = static_cast<std::uint8_t>((*at & ~mask) | (value & mask));
        ++at;
        moved += bits;
      }
    }
    done += take;
  }
  return set;
}

/// The places of set bits among the first `count`, ascending, to `places`, which has room for them all.
inline void set_bits(Bits bits, std::int64_t count, std::int64_t* places) {
  for (std::int64_t at = 0; at < count; at += 64) {
    std::uint64_t word = bits.word(at, static_cast<int>(std::min<std::int64_t>(64, count - at)));
    for (; word != 0; word &= word - 1) *places++ = at + std::countr_zero(word);
  }
}

/// The indexes of those of `count` places whose bits are set, ascending, to `indexes`, which has room for
/// them all; returns how many there are.
inline std::int64_t set_among(Bits bits, const std::int64_t* places, std::int64_t count,
                              std::int64_t* indexes) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    indexes[found] = i;
    found += bits[places[i]] ? 1 : 0;
  }
  return found;
}

/// How many of the first `count` bits are set.
inline std::int64_t count_bits(Bits bits, std::int64_t count) {
  std::int64_t set = 0;
  for (std::int64_t at = 0; at < count; at += 64) {
    set += std::popcount(bits.word(at, static_cast<int>(std::min<std::int64_t>(64, count - at))));
  }
  return set;
}

}  // namespace bamquery
