// What the images of guests' drives hold: the place for C++; tests/guests/pattern.py says the same.
#pragma once

#include <cstdint>

namespace guests {

// The 8-byte word, little endian, at this place: 0 is the first word of a block. Drives are numbered from 0
// as they are attached. Different places hold different words: each step is a bijection of 64 bits, as long
// as drive < 2^8, lba < 2^44 and word < 2^12.
constexpr uint64_t pattern(uint64_t drive, uint64_t lba, uint64_t word) {
  uint64_t value = (drive << 56 | lba << 12 | word) * 0x9E3779B97F4A7C15u;
  value ^= value >> 29;
  value *= 0xBF58476D1CE4E5B9u;
  return value ^ value >> 32;
}

}  // namespace guests
