// LIKE without underscores: parts of a pattern that strings have in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bamquery {

/// A pattern that is cut at its percent signs. UTF-8 is compared byte by byte: no character's bytes begin
/// within another's.
struct PatternParts {
  std::vector<std::string> parts;  ///< None empty.
  bool at_start = false;           ///< Strings begin with the first part.
  bool at_end = false;             ///< And end with the last one.
};

/// Where `part` begins in [begin, end) first, or `end`.
const char* find_part(const char* begin, const char* end, std::string_view part);

/// Sets bit `shift` + row for each string that matches; the bits are 0 before. String `row` is
/// [offsets[row], offsets[row + 1]) of `data`.
void match_parts(const PatternParts& pattern, std::span<const std::int64_t> offsets, const char* data,
                 std::size_t shift, std::uint8_t* bits);

}  // namespace bamquery
