#include "storage/native/packed/fsst/symbol_decoder.hpp"

#include <cstring>

namespace bamquery {
namespace {

// Whether one of four codes is an escape: a byte of ones has its complement zero.
bool has_escape(std::uint32_t codes) {
  const std::uint32_t flipped = ~codes;
  return ((flipped - 0x01010101u) & ~flipped & 0x80808080u) != 0;
}

}  // namespace

std::optional<std::uint64_t> SymbolDecoder::size(std::span<const std::uint8_t> codes) const {
  std::uint64_t total = 0;
  bool right = true;
  for (std::size_t at = 0; at < codes.size(); ++at) {
    if (codes[at] == kSymbolEscape) {
      ++at;
      right &= at < codes.size();
      ++total;
    } else {
      const std::uint8_t length = table_.lengths[codes[at]];
      right &= length > 0;
      total += length;
    }
  }
  if (!right) return std::nullopt;
  return total;
}

std::uint8_t* SymbolDecoder::decode(std::span<const std::uint8_t> codes, std::uint8_t* out,
                                    std::uint8_t* limit) const {
  const std::uint8_t* from = codes.data();
  const std::uint8_t* const end = from + codes.size();
  bool right = true;
  const auto put = [&](std::uint8_t code) {
    const std::uint8_t length = table_.lengths[code];
    std::memcpy(out, &table_.bytes[code], kMostSymbolBytes);
    right &= length > 0;
    out += length;
  };
  // While all that is left fits even if each code is a symbol of eight bytes, eight are written for each.
  if (static_cast<std::size_t>(limit - out) / kMostSymbolBytes >= codes.size()) {
    while (end - from >= 4) {
      std::uint32_t four;
      std::memcpy(&four, from, sizeof four);
      if (has_escape(four)) {
        if (*from != kSymbolEscape) {
          put(*from++);
        } else {
          *out++ = from[1];
          from += 2;
        }
        continue;
      }
      put(from[0]);
      put(from[1]);
      put(from[2]);
      put(from[3]);
      from += 4;
    }
  }
  for (; from < end; ++from) {
    if (*from == kSymbolEscape) {
      if (++from == end || out == limit) return nullptr;
      *out++ = *from;
    } else if (limit - out >= static_cast<std::ptrdiff_t>(kMostSymbolBytes)) {
      put(*from);
    } else {
      const std::uint8_t length = table_.lengths[*from];
      if (length > limit - out) return nullptr;
      std::memcpy(out, &table_.bytes[*from], length);
      right &= length > 0;
      out += length;
    }
  }
  return right ? out : nullptr;
}

std::uint8_t* SymbolDecoder::decode_marking(std::span<const std::uint8_t> codes, std::uint8_t* out,
                                            std::uint32_t* marks) const {
  const std::uint8_t* from = codes.data();
  const std::uint8_t* const end = from + codes.size();
  const std::uint8_t* const begin = out;
  bool right = true;
  const auto put = [&](std::uint8_t code, std::uint32_t& mark) {
    const std::uint8_t length = table_.lengths[code];
    std::memcpy(out, &table_.bytes[code], kMostSymbolBytes);
    right &= length > 0;
    out += length;
    mark = static_cast<std::uint32_t>(out - begin);
  };
  while (from < end) {
    std::uint32_t four = 0;
    if (end - from >= 4) {
      std::memcpy(&four, from, sizeof four);
      if (!has_escape(four)) {
        put(from[0], marks[0]);
        put(from[1], marks[1]);
        put(from[2], marks[2]);
        put(from[3], marks[3]);
        from += 4;
        marks += 4;
        continue;
      }
    }
    if (*from != kSymbolEscape) {
      put(*from++, *marks++);
      continue;
    }
    if (++from == end) return nullptr;
    *out++ = *from++;
    marks[0] = kInside;
    marks[1] = static_cast<std::uint32_t>(out - begin);
    marks += 2;
  }
  return right ? out : nullptr;
}

}  // namespace bamquery
