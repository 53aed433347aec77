#include "engine/native/pipeline/output_column.hpp"

#include <algorithm>
#include <array>

#include "storage/native/bitmap.hpp"

namespace bamquery {
namespace {

template <typename T>
void narrow(const std::int64_t* words, std::int32_t count, std::byte* values, std::int64_t row) {
  T* const out = reinterpret_cast<T*>(values) + row;
  for (std::int32_t i = 0; i < count; ++i) out[i] = static_cast<T>(words[i]);
}

// One bit a row from bytes of 0 and 1; returns how many are 1.
std::int64_t store_bits(const std::uint8_t* bytes, std::int64_t row, std::int32_t count, std::uint8_t* bits) {
  std::array<std::uint8_t, kProgramRows / 8> packed;
  for (std::int32_t at = 0; at < count; at += 8) {
    unsigned byte = 0;
    for (std::int32_t i = 0; i < std::min(8, count - at); ++i) {
      byte |= static_cast<unsigned>(bytes[at + i]) << i;
    }
    packed[static_cast<std::size_t>(at / 8)] = static_cast<std::uint8_t>(byte);
  }
  return copy_bits({packed.data(), 0}, count, bits, row);
}

void store_int128(const std::int64_t* words, std::int32_t count, std::byte* values, std::int64_t row) {
  auto* const out = reinterpret_cast<std::int64_t*>(values) + 2 * row;
  for (std::int32_t i = 0; i < count; ++i) {
    out[2 * i] = words[i];
    out[2 * i + 1] = words[i] >> 63;
  }
}

}  // namespace

std::int64_t store_rows(const Register& found, const OutputColumn& column, std::int64_t row,
                        std::int32_t count) {
  const std::int64_t* const words = found.words.data();
  switch (column.kind) {
    case ValueKind::kInt8:
    case ValueKind::kUInt8:
      narrow<std::uint8_t>(words, count, column.values, row);
      break;
    case ValueKind::kInt16:
    case ValueKind::kUInt16:
      narrow<std::uint16_t>(words, count, column.values, row);
      break;
    case ValueKind::kInt32:
    case ValueKind::kUInt32:
      narrow<std::uint32_t>(words, count, column.values, row);
      break;
    case ValueKind::kInt128:
      store_int128(words, count, column.values, row);
      break;
    case ValueKind::kBool:
      store_bits(found.flags.data(), row, count, reinterpret_cast<std::uint8_t*>(column.values));
      break;
    default:
      narrow<std::int64_t>(words, count, column.values, row);
  }
  if (found.all_valid) return count - copy_bits({}, count, column.bitmap, row);
  return count - store_bits(found.valid.data(), row, count, column.bitmap);
}

}  // namespace bamquery
