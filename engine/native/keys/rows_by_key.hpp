// Rows put together by their keys.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace bamquery {

/// In place of the number of a row's key where it has none.
inline constexpr std::uint32_t kNoKey = std::numeric_limits<std::uint32_t>::max();

/// Writes each row behind the ones before it that have the same key.
///
/// `keys` has the number of each row's key. The rows of key k begin at `begins[k + 1]` of `order`, which is
/// moved to their end; the last place of `begins` is not looked at. `shares`: threads that it is worth.
void place_rows(std::span<const std::uint32_t> keys, std::span<std::uint32_t> begins, std::uint32_t* order,
                std::int64_t shares);

}  // namespace bamquery
