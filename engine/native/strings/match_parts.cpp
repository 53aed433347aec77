#include "engine/native/strings/match_parts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bamquery {
namespace {

bool begins_with(const char* begin, const char* end, std::string_view part) {
  return static_cast<std::size_t>(end - begin) >= part.size() &&
         std::memcmp(begin, part.data(), part.size()) == 0;
}

// Whether [begin, end) has parts `from` and on, in order.
bool has_rest(const PatternParts& pattern, std::size_t from, const char* begin, const char* end) {
  const std::size_t last = pattern.parts.size() - (pattern.at_end ? 1 : 0);
  for (std::size_t i = from; i < last; ++i) {
    const char* found = find_part(begin, end, pattern.parts[i]);
    if (found == end) return false;
    begin = found + pattern.parts[i].size();
  }
  if (!pattern.at_end || from > last) return !pattern.at_end || begin == end;
  const std::string& part = pattern.parts.back();
  return static_cast<std::size_t>(end - begin) >= part.size() &&
         std::memcmp(end - part.size(), part.data(), part.size()) == 0;
}

}  // namespace

const char* find_part(const char* begin, const char* end, std::string_view part) {
  if (static_cast<std::size_t>(end - begin) < part.size()) return end;
#if defined(__SSE2__)
  // The first and the last byte of 16 places at once; what is between is looked at where both are right.
  const std::size_t beyond = part.size() - 1;
  const __m128i first = _mm_set1_epi8(part.front()), last = _mm_set1_epi8(part.back());
  while (static_cast<std::size_t>(end - begin) >= beyond + 16) {
    const __m128i firsts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(begin));
    const __m128i lasts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(begin + beyond));
    auto places = static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(firsts, first), _mm_cmpeq_epi8(lasts, last))));
    for (; places != 0; places &= places - 1) {
      const char* place = begin + std::countr_zero(places);
      if (std::memcmp(place, part.data(), part.size()) == 0) return place;
    }
    begin += 16;
  }
#endif
  return std::search(begin, end, part.begin(), part.end());
}

void match_parts(const PatternParts& pattern, std::span<const std::int64_t> offsets, const char* data,
                 std::size_t shift, std::uint8_t* bits) {
  const std::size_t rows = offsets.size() - 1;
  const auto mark = [&](std::size_t row) {
    const std::size_t bit = shift + row;
    bits[bit / 8] = static_cast<std::uint8_t>(bits[bit / 8] | 1U << (bit % 8));
  };
  const std::string& first = pattern.parts.front();
  const bool only_end = pattern.at_end && pattern.parts.size() == 1;
  if (pattern.at_start || only_end) {
    for (std::size_t row = 0; row < rows; ++row) {
      const char *begin = data + offsets[row], *end = data + offsets[row + 1];
      if (!pattern.at_start) {
        if (has_rest(pattern, 0, begin, end)) mark(row);
      } else if (begins_with(begin, end, first)) {
        const bool whole = only_end && static_cast<std::size_t>(end - begin) == first.size();
        if (only_end ? whole : has_rest(pattern, 1, begin + first.size(), end)) mark(row);
      }
    }
    return;
  }
  // The first part is looked for in all strings at once, which lie one after the other.
  const char *begin = data + offsets.front(), *end = data + offsets.back();
  std::size_t row = 0;
  while (begin != end) {
    const char* found = find_part(begin, end, first);
    if (found == end) return;
    while (data + offsets[row + 1] <= found) ++row;
    const char* stop = data + offsets[row + 1];
    const char* behind = found + first.size();
    // Where the first place does not do, none behind it does: what follows has less room there.
    if (behind <= stop && has_rest(pattern, 1, behind, stop)) mark(row);
    begin = stop;
  }
}

}  // namespace bamquery
