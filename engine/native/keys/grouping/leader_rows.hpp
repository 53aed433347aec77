// The first rows of groups, and their numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace bamquery {

/// Where `find(share, first, count)` writes the first row of each of these rows' groups to `codes`, writes
/// the groups' numbers in its place, in order of these rows, and returns them. By `shares` parts of the rows.
std::vector<std::int64_t> number_leaders(
    std::int64_t rows, std::int64_t shares, std::int32_t* codes,
    const std::function<void(std::int64_t share, std::int64_t first, std::int64_t count)>& find);

}  // namespace bamquery
