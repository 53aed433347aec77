#include "storage/native/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace bamquery {
namespace {

bool between(std::byte byte, unsigned low, unsigned high) {
  const auto value = std::to_integer<unsigned>(byte);
  return low <= value && value <= high;
}

// Bytes of the character at the front of `text`, or 0 if it is ill-formed.
std::size_t character_size(std::span<const std::byte> text) {
  const auto lead = std::to_integer<unsigned>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  // The second byte has a narrower range where the first alone would allow overlong forms, surrogates or code
  // points beyond U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!between(text[1], low, high)) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (!between(text[i], 0x80, 0xBF)) return 0;
  }
  return size;
}

}  // namespace

bool is_ascii(std::span<const std::byte> text) {
  std::uint64_t seen = 0;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    seen |= word;
  }
  for (; at < text.size(); ++at) seen |= std::to_integer<std::uint64_t>(text[at]);
  return (seen & 0x8080808080808080U) == 0;
}

bool is_utf8(std::span<const std::byte> text) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text = text.subspan(size);
  }
  return true;
}

}  // namespace bamquery
