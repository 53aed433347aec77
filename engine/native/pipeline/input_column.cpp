#include "engine/native/pipeline/input_column.hpp"

#include <algorithm>
#include <bit>

namespace bamquery {
namespace {

template <typename T>
[[gnu::always_inline]] inline void widen(const T* values, std::int32_t count, std::int64_t* words) {
  for (std::int32_t i = 0; i < count; ++i) words[i] = static_cast<std::int64_t>(values[i]);
}

BAMQUERY_CLONES void load_int8(const std::int8_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_int16(const std::int16_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_int32(const std::int32_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_uint8(const std::uint8_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_uint16(const std::uint16_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_uint32(const std::uint32_t* from, std::int32_t count, std::int64_t* words) {
  widen(from, count, words);
}
BAMQUERY_CLONES void load_float(const float* from, std::int32_t count, std::int64_t* words) {
  for (std::int32_t i = 0; i < count; ++i) {
    words[i] = std::bit_cast<std::int64_t>(static_cast<double>(from[i]));
  }
}

// Low words of 128-bit numbers; whether the high ones repeat their sign in every row.
BAMQUERY_CLONES bool load_int128(const std::int64_t* from, std::int32_t count, std::int64_t* words) {
  std::int64_t lost = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    words[i] = from[2 * i];
    lost |= from[2 * i + 1] ^ (from[2 * i] >> 63);
  }
  return lost == 0;
}

// The same where some rows are null, whose words may be anything.
bool load_valid_int128(const std::int64_t* from, const std::uint8_t* valid, std::int32_t count,
                       std::int64_t* words) {
  std::int64_t lost = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    words[i] = from[2 * i];
    lost |= valid[i] != 0 ? from[2 * i + 1] ^ (from[2 * i] >> 63) : 0;
  }
  return lost == 0;
}

void spread_bits(const Bits& bits, std::int64_t row, std::int32_t count, std::uint8_t* bytes) {
  for (std::int32_t at = 0; at < count; at += 64) {
    const std::int32_t some = std::min(64, count - at);
    const std::uint64_t word = bits.word(row + at, some);
    for (std::int32_t i = 0; i < some; ++i) bytes[at + i] = static_cast<std::uint8_t>((word >> i) & 1);
  }
}

BAMQUERY_CLONES void clear_nulls(const std::uint8_t* valid, std::int32_t count, std::int64_t* words) {
  for (std::int32_t i = 0; i < count; ++i) words[i] &= -static_cast<std::int64_t>(valid[i]);
}

template <typename T>
const T* rows_of(const InputColumn& column, std::int64_t row) {
  return reinterpret_cast<const T*>(column.values) + row;
}

}  // namespace

bool load_rows(const InputColumn& column, std::int64_t row, std::int32_t count, Register& out) {
  std::int64_t* const words = out.words.data();
  out.all_valid = column.valid.all_set();
  if (!out.all_valid) spread_bits(column.valid, row, count, out.valid.data());
  bool fits = true;
  switch (column.kind) {
    case ValueKind::kInt8:
      load_int8(rows_of<std::int8_t>(column, row), count, words);
      break;
    case ValueKind::kInt16:
      load_int16(rows_of<std::int16_t>(column, row), count, words);
      break;
    case ValueKind::kInt32:
      load_int32(rows_of<std::int32_t>(column, row), count, words);
      break;
    case ValueKind::kUInt8:
      load_uint8(rows_of<std::uint8_t>(column, row), count, words);
      break;
    case ValueKind::kUInt16:
      load_uint16(rows_of<std::uint16_t>(column, row), count, words);
      break;
    case ValueKind::kUInt32:
      load_uint32(rows_of<std::uint32_t>(column, row), count, words);
      break;
    case ValueKind::kFloat32:
      load_float(rows_of<float>(column, row), count, words);
      break;
    case ValueKind::kInt128: {
      const auto* from = reinterpret_cast<const std::int64_t*>(column.values) + 2 * row;
      fits = out.all_valid ? load_int128(from, count, words)
                           : load_valid_int128(from, out.valid.data(), count, words);
      break;
    }
    case ValueKind::kBool:
      spread_bits(column.bits, row, count, out.flags.data());
      if (!out.all_valid) {
        for (std::int32_t i = 0; i < count; ++i) {
          out.flags[static_cast<std::size_t>(i)] &= out.valid[static_cast<std::size_t>(i)];
        }
      }
      return true;
    default:  // 64 bits: as they are
      std::copy_n(rows_of<std::int64_t>(column, row), count, words);
  }
  if (!out.all_valid) clear_nulls(out.valid.data(), count, words);
  return fits;
}

}  // namespace bamquery
