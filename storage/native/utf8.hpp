// Is it UTF-8? Asked of every string that is written, so that every reader may trust it.
#pragma once

#include <cstddef>
#include <span>

namespace bamquery {

/// True if all bytes are below 0x80; eight at a time.
bool is_ascii(std::span<const std::byte> text);

/// True if the bytes are well-formed by table 3-7 of the Unicode standard: no overlong forms, no surrogates.
bool is_utf8(std::span<const std::byte> text);

}  // namespace bamquery
