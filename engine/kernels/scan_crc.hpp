// CRC-32C of many pieces of equal size side by side, and of what they are together.
//
// Remainders are in the reflected order: bit 31 is the coefficient of x^0. Leaving out the usual inversions
// makes the CRC linear: that of two pieces is that of the first, moved on by the second's length, plus the
// second's.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

inline constexpr uint32_t kCrcPolynomial = 0x82f63b78u;
inline constexpr uint32_t kCrcPieces = 32;
inline constexpr uint32_t kCrcSteps = 5;      ///< 32 pieces become one.
inline constexpr uint32_t kCrcPartSteps = 2;  ///< 4 pieces become a part's.

/// The remainder after one more byte of zeros.
BAMQUERY_CORE constexpr uint32_t crc_byte(uint32_t crc) {
  for (uint32_t bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kCrcPolynomial : 0);
  return crc;
}

/// The product of two remainders.
BAMQUERY_CORE constexpr uint32_t crc_multiply(uint32_t left, uint32_t right) {
  uint32_t product = 0;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if ((left >> (31 - bit) & 1) != 0) product ^= right;
    right = right >> 1 ^ ((right & 1) != 0 ? kCrcPolynomial : 0);
  }
  return product;
}

/// What remainders of a vector's pieces are multiplied with: x^(8 n) moves on by n bytes.
struct CrcShifts {
  uint32_t step[kCrcSteps];  ///< By 1, 2, 4, 8 and 16 pieces.
  uint32_t start;            ///< What the inversion before the first byte has become behind the last.
  uint32_t part_start;       ///< The same behind a part's last.
};

}  // namespace bamquery
