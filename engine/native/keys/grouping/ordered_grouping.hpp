// Rows to groups by one thread, one row after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/native/keys/row_codes.hpp"

namespace bamquery {

/// How many groups are numbered before it is given up, by all threads that have one `passed`.
struct GroupLimit {
  std::size_t most = std::numeric_limits<std::size_t>::max();
  std::atomic<bool>* passed = nullptr;

  /// Whether it is time to give up where so many are known.
  bool stops(std::size_t groups) const {
    if (passed == nullptr) return false;
    if (groups > most) passed->store(true, std::memory_order_relaxed);
    return passed->load(std::memory_order_relaxed);
  }
};

/// As `group_rows`. `row_codes` has codes for the rows' keys, among others; null where 64 bits are few. What
/// it has written and returns is of no use where the limit was passed.
std::vector<std::int64_t> number_in_order(const RowCodes* row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, const GroupLimit& limit, std::int32_t* codes);

}  // namespace bamquery
