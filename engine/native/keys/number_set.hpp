// Whole numbers, and whether others are among them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// A bit for each number from the least to the greatest one where these are close, else a table of hashes.
/// Asked by any number of threads at once.
class NumberSet {
 public:
  /// Of the column's values, no null among them; 8 bytes wide at most.
  explicit NumberSet(const KeyColumn& members);

  /// Sets the bits of those rows that are among them, from the first bit of `bits` on; those of null rows
  /// are anything. The column's kind is that of the members.
  void contains(const KeyColumn& column, std::uint8_t* bits) const;

 private:
  std::uint64_t low_ = 0;
  std::uint64_t span_ = 0;
  std::vector<std::uint64_t> flags_;  // bits by distance from the lowest one
  std::vector<std::uint64_t> slots_;  // distances by hash; that of the lowest one, which is a member, is none
  std::uint64_t mask_ = 0;
  bool is_empty_ = true;
};

}  // namespace bamquery
