// What benchmarks write, and therefore expect to read: every 8 bytes are a function of the seed and of their
// place, so that a wrong block, a shifted one and yesterday's bytes in a landing buffer all show.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

/// Unit of the content; a block of any size is a run of these, so block sizes can change over one content.
inline constexpr uint32_t kContentSectorBytes = 512;
inline constexpr uint32_t kContentSectorWords = kContentSectorBytes / 8;

/// A bijection of 64-bit words that spreads every bit (SplitMix64's finaliser; Steele, Lea and Flood 2014).
BAMQUERY_CORE constexpr uint64_t mix_bits(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

/// What all words of a sector have in common: byte offset of the sector = `sector` × 512.
BAMQUERY_CORE constexpr uint64_t content_key(uint64_t seed, uint64_t sector) {
  return mix_bits(mix_bits(seed) + sector * 0x9e3779b97f4a7c15u);
}

/// Word `word` (0 to 63) of the sector with this key. An addition only: comparing must not be what is
/// measured.
BAMQUERY_CORE constexpr uint64_t content_word(uint64_t key, uint32_t word) {
  return key + word * 0xd1342543de82ef95u;
}

}  // namespace bamquery
