// How many distinct groups of 2^k rows a selection touches, for every k at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace bamquery {

inline constexpr int kPyramidLevels = 64;

/// Of ascending rows, none of them negative.
struct HitPyramid {
  std::array<std::int64_t, kPyramidLevels> groups{};  ///< Distinct groups of 2^k rows that hold one.
  std::array<std::int64_t, kPyramidLevels> runs{};    ///< Of such groups side by side.
};

/// One pass: a row begins a new group of 2^k rows exactly where it and the row before differ in bit k or a
/// higher one, and that group is the next one from some k on.
HitPyramid count_hit_pyramid(std::span<const std::int64_t> rows);

}  // namespace bamquery
