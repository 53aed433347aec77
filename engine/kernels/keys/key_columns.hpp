// Rows told apart by their keys, whatever columns these are.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

/// One column of keys. Nulls are equal to each other.
struct KeyColumn {
  const byte* values;     ///< Of the first row; for strings the characters that `offsets` count.
  const byte* offsets;    ///< Of strings: of the first row; null: values have `width` bytes.
  const uint32_t* valid;  ///< A bit a row; null: none is null.
  uint64_t first_bit;     ///< The first row's.
  uint32_t width;         ///< Bytes of a value: 1, 2, 4, 8 or 16; of strings those of an offset, 4 or 8.
  uint32_t unused;
};

inline constexpr uint32_t kMostKeys = 16;

struct KeyColumns {
  KeyColumn column[kMostKeys];
  uint64_t count;
};

struct Span {
  const byte* begin;
  uint64_t size;
};

__device__ inline bool is_null_key(const KeyColumn& column, uint64_t row) {
  if (column.valid == nullptr) return false;
  const uint64_t bit = column.first_bit + row;
  return (column.valid[bit / 32] >> bit % 32 & 1) == 0;
}

__device__ inline uint64_t key_offset(const KeyColumn& column, uint64_t at) {
  return column.width == 8 ? reinterpret_cast<const uint64_t*>(column.offsets)[at]
                           : reinterpret_cast<const uint32_t*>(column.offsets)[at];
}

__device__ inline Span key_string(const KeyColumn& column, uint64_t row) {
  const uint64_t begin = key_offset(column, row);
  return {column.values + begin, key_offset(column, row + 1) - begin};
}

/// A value of at most 8 bytes.
__device__ inline uint64_t key_word(const KeyColumn& column, uint64_t row) {
  switch (column.width) {
    case 1:
      return reinterpret_cast<const uint8_t*>(column.values)[row];
    case 2:
      return reinterpret_cast<const uint16_t*>(column.values)[row];
    case 4:
      return reinterpret_cast<const uint32_t*>(column.values)[row];
    default:
      return reinterpret_cast<const uint64_t*>(column.values)[row];
  }
}

/// Bits well mixed: the finalizer of MurmurHash3 (Austin Appleby, public domain).
__device__ inline uint64_t mix_key(uint64_t word) {
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccdull;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53ull;
  return word ^ word >> 33;
}

__device__ inline uint64_t hash_key(const KeyColumn& column, uint64_t row, uint64_t seed) {
  if (is_null_key(column, row)) return mix_key(seed + 0x9e3779b97f4a7c15ull);
  if (column.offsets != nullptr) {
    const Span text = key_string(column, row);
    uint64_t word = text.size;
    for (uint64_t i = 0; i < text.size; ++i) {
      word = word << 8 | static_cast<uint64_t>(text.begin[i]);
      if (i % 8 == 7) seed = mix_key(seed ^ word);
    }
    return mix_key(seed ^ word ^ text.size << 56);
  }
  if (column.width != 16) return mix_key(seed ^ key_word(column, row));
  const uint64_t* const words = reinterpret_cast<const uint64_t*>(column.values) + 2 * row;
  return mix_key(mix_key(seed ^ words[0]) ^ words[1]);
}

__device__ inline uint64_t hash_row(const KeyColumns& keys, uint64_t row) {
  uint64_t hash = 0;
  for (uint32_t i = 0; i < keys.count; ++i) hash = hash_key(keys.column[i], row, hash);
  return hash;
}

__device__ inline bool is_equal_key(const KeyColumn& a, uint64_t row, const KeyColumn& b, uint64_t other) {
  const bool null = is_null_key(a, row);
  if (null || is_null_key(b, other)) return null == is_null_key(b, other);
  if (a.offsets != nullptr) {
    const Span one = key_string(a, row), two = key_string(b, other);
    if (one.size != two.size) return false;
    for (uint64_t i = 0; i < one.size; ++i) {
      if (one.begin[i] != two.begin[i]) return false;
    }
    return true;
  }
  if (a.width != 16) return key_word(a, row) == key_word(b, other);
  const uint64_t* const one = reinterpret_cast<const uint64_t*>(a.values) + 2 * row;
  const uint64_t* const two = reinterpret_cast<const uint64_t*>(b.values) + 2 * other;
  return one[0] == two[0] && one[1] == two[1];
}

/// Whether the row has a null that equals nothing: one in a column whose bit is set.
__device__ inline bool has_unequal_null(const KeyColumns& keys, uint64_t row, uint32_t unequal) {
  for (uint32_t i = 0; i < keys.count; ++i) {
    if ((unequal >> i & 1) != 0 && is_null_key(keys.column[i], row)) return true;
  }
  return false;
}

/// Whether two rows have the same key; both sides' columns are of the same types.
__device__ inline bool is_equal_row(const KeyColumns& a, uint64_t row, const KeyColumns& b, uint64_t other) {
  for (uint32_t i = 0; i < a.count; ++i) {
    if (!is_equal_key(a.column[i], row, b.column[i], other)) return false;
  }
  return true;
}

}  // namespace bamquery
