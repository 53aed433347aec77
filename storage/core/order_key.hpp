// Unsigned numbers that order as SQL orders values: conditions compare these, whatever the type.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

template <bool kWide>
struct OrderKeyOf {
  using Type = uint32_t;
};
template <>
struct OrderKeyOf<true> {
  using Type = uint64_t;
};
/// What a value's key is: 64 bits, or 32 for what fits them; 128 for decimals. Intervals have 64 bits or 128.
template <typename T>
struct OrderKeys {
  using Type = typename OrderKeyOf<(sizeof(T) > 4)>::Type;
  using Stored = uint64_t;
};
template <typename T>
using OrderKey = typename OrderKeys<T>::Type;

/// The bits of a value.
template <typename To, typename From>
BAMQUERY_CORE To bits_of(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
#if defined(__CUDACC__)
  memcpy(&bits, &value, sizeof bits);
#else
  __builtin_memcpy(&bits, &value, sizeof bits);
#endif
  return bits;
}

/// A value's key: unsigned, and ordered as SQL orders the values. -0 is 0; NaN equals NaN and is the
/// greatest.
template <typename T>
BAMQUERY_CORE auto order_key(T value) {
  if constexpr (static_cast<T>(0.5) != T{0}) {
    using Key = OrderKey<T>;
    constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
    if (value != value) return static_cast<Key>(~Key{0});
    const Key bits = bits_of<Key>(value + T{0});  // -0 becomes 0
    return (bits & kSign) != 0 ? static_cast<Key>(~bits) : static_cast<Key>(bits | kSign);
  } else {
    using Key = OrderKey<T>;
    constexpr bool kSigned = static_cast<T>(-1) < T{0};
    constexpr Key kSign = kSigned ? Key{1} << (8 * sizeof(Key) - 1) : Key{0};
    return static_cast<Key>(static_cast<Key>(value) ^ kSign);
  }
}

}  // namespace bamquery
