// Columns of fixed width as keys: whole numbers of 8 to 128 bits, read as words of 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/native/keys/wide.hpp"
#include "storage/native/bitmap.hpp"

namespace bamquery {

/// Rows that are worked on at once: their codes stay in the first cache.
inline constexpr std::int64_t kBlockRows = 1024;

/// A view of values; those whose bit is clear are null, and may be anything.
struct KeyColumn {
  const std::byte* data = nullptr;
  int width = 8;  ///< bytes: 1, 2, 4, 8 or 16
  bool is_signed = true;
  std::int64_t rows = 0;
  Bits valid{};

  bool has_nulls() const { return !valid.all_set(); }

  /// `count` rows from `first` on.
  KeyColumn slice(std::int64_t first, std::int64_t count) const {
    KeyColumn part = *this;
    part.data += static_cast<std::size_t>(first) * static_cast<std::size_t>(width);
    part.rows = count;
    part.valid.offset += first;
    return part;
  }
};

/// Values that may lie at any address: buffers of Arrow align those of 128 bits to 64 only.
template <typename T>
struct Values {
  const std::byte* data;

  T operator[](std::int64_t row) const {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(row) * sizeof value, sizeof value);
    return value;
  }
};

/// Calls `use` with the column's values as those of their type; of 16 bytes, as of Int128.
template <typename Use>
void with_values(const KeyColumn& column, Use&& use) {
  switch (column.width) {
    case 1:
      return column.is_signed ? use(Values<std::int8_t>{column.data})
                              : use(Values<std::uint8_t>{column.data});
    case 2:
      return column.is_signed ? use(Values<std::int16_t>{column.data})
                              : use(Values<std::uint16_t>{column.data});
    case 4:
      return column.is_signed ? use(Values<std::int32_t>{column.data})
                              : use(Values<std::uint32_t>{column.data});
    case 8:
      return column.is_signed ? use(Values<std::int64_t>{column.data})
                              : use(Values<std::uint64_t>{column.data});
    default:
      return use(Values<Int128>{column.data});
  }
}

/// The word of a value: its lowest 64 bits, the sign filled up.
template <typename T>
std::uint64_t word_of(T value) {
  if constexpr (sizeof(T) == 16 || static_cast<T>(-1) > T{0}) {
    return static_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

}  // namespace bamquery
