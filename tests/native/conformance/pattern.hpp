// What namespaces hold before a suite runs, for whoever fills images and whoever reads them.
#pragma once

#include <cstdint>

namespace bamquery::conformance {

/// The 8-byte word, little endian, at this place of a namespace: word 0 is the first of a block. `contents`
/// tells namespaces, and what is written later, apart. Different places hold different words: each step is a
/// bijection of 64 bits, as long as contents < 2^8, lba < 2^44 and word < 2^12.
constexpr std::uint64_t pattern(std::uint64_t contents, std::uint64_t lba, std::uint64_t word) {
  std::uint64_t value = (contents << 56 | lba << 12 | word) * 0x9e3779b97f4a7c15u;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9u;
  return value ^ value >> 32;
}

}  // namespace bamquery::conformance
