// Hashes of words for tables in memory: they are of one process, and of no use in files.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/native/keys/wide.hpp"

namespace bamquery {

/// Both halves of a product depend on all bits of a word; so do those of their sum without carries.
inline std::uint64_t hash_word(std::uint64_t word) {
  const UnsignedInt128 product =
      static_cast<UnsignedInt128>(word ^ 0x9E3779B97F4A7C15ULL) * 0xD6E8FEB86659FD93ULL;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Slots of a table that stays at most half full, a power of two.
inline std::uint64_t slots_for(std::uint64_t entries) {
  return std::bit_ceil(entries < 8 ? 16 : 2 * entries);
}

}  // namespace bamquery
