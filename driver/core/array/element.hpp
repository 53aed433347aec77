// One value in a page that others may read and write at the same time.
#pragma once

#include "driver/core/atomics.hpp"

namespace bamquery {

template <uint32_t kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = uint8_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint64_t;
};

/// A value of 1, 2, 4 or 8 bytes at a multiple of its size: never torn, and in no order with others
/// (relaxed).
template <typename T>
BAMQUERY_CORE T load_element(const byte* at) {
  using Word = typename WordOf<sizeof(T)>::Type;
  Word& word = *reinterpret_cast<Word*>(const_cast<byte*>(at));
  return __builtin_bit_cast(T, AtomicRef<Word, Scope::kDevice>(word).load(kRelaxed));
}

template <typename T>
BAMQUERY_CORE void store_element(byte* at, T value) {
  using Word = typename WordOf<sizeof(T)>::Type;
  Word& word = *reinterpret_cast<Word*>(at);
  AtomicRef<Word, Scope::kDevice>(word).store(__builtin_bit_cast(Word, value), kRelaxed);
}

}  // namespace bamquery
