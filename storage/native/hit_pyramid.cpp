#include "storage/native/hit_pyramid.hpp"

#include <bit>

namespace bamquery {

HitPyramid count_hit_pyramid(std::span<const std::int64_t> rows) {
  HitPyramid found;
  if (rows.empty()) return found;
  // How many rows differ from the one before in bit n - 1 and no higher one.
  std::array<std::int64_t, kPyramidLevels + 1> widths{};
  // How many more rows begin a group next to the one before, at size 2^k than at the next smaller one.
  std::array<std::int64_t, kPyramidLevels + 1> adjacent{};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto before = static_cast<std::uint64_t>(rows[i - 1]);
    const auto row = static_cast<std::uint64_t>(rows[i]);
    const auto width = static_cast<std::size_t>(std::bit_width(before ^ row));
    ++widths[width];
    if (row == before) continue;
    // Rows less than twice a group apart may be in groups side by side; nearer ones in larger groups are.
    auto level = static_cast<std::size_t>(std::bit_width(row - before)) - 1;
    if ((row >> level) - (before >> level) != 1) ++level;
    if (level >= width) continue;
    ++adjacent[level];
    --adjacent[width];
  }
  std::int64_t above = 1;  // the first row begins a group of any size
  for (std::size_t level = kPyramidLevels; level-- > 0;) found.groups[level] = above += widths[level + 1];
  std::int64_t beside = 0;
  for (std::size_t level = 0; level < kPyramidLevels; ++level) {
    beside += adjacent[level];
    found.runs[level] = found.groups[level] - beside;
  }
  return found;
}

}  // namespace bamquery
