// Values of a vector as the packer takes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/native/bitmap.hpp"
#include "storage/native/packed/payload.hpp"

namespace bamquery {

/// Room for the values of a vector that are not as the packer takes them.
template <typename T>
using VectorRoom = std::array<T, kPackedVectorRows>;

/// Values from row `first` on: where they are, or, of booleans and decimals, in `room`. Null where a decimal
/// needs more than 64 bits.
template <typename T>
const T* vector_values(ValueKind kind, const std::byte* values, std::int64_t first, std::uint32_t rows,
                       VectorRoom<T>& room) {
  if (kind == ValueKind::kBool) {
    const Bits bits{reinterpret_cast<const std::uint8_t*>(values), first};
    for (std::uint32_t row = 0; row < rows; ++row) room[row] = static_cast<T>(bits[row]);
    return room.data();
  }
  if (kind == ValueKind::kInt128) {
    const std::byte* at = values + 16 * first;
    for (std::uint32_t row = 0; row < rows; ++row, at += 16) {
      std::int64_t words[2];
      std::memcpy(words, at, sizeof words);
      if (words[1] != words[0] >> 63) return nullptr;
      room[row] = static_cast<T>(words[0]);
    }
    return room.data();
  }
  return reinterpret_cast<const T*>(values) + first;
}

}  // namespace bamquery
