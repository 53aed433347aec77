// Rows to groups by a few small whole numbers, batch by batch: a table with a place for each that could be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/pipeline/program.hpp"

namespace bamquery {

/// Numbers groups from 0 on as they first appear. The table grows with the keys' ranges, as long as these are
/// small together.
class DenseGroups {
 public:
  /// `shapes`: what each key's register holds.
  explicit DenseGroups(std::span<const Shape> shapes);

  /// Writes the groups of a batch of `count` rows. False where there would be too many places.
  bool number(std::span<const Register* const> keys, std::int32_t count, std::uint32_t* codes);

  /// The same of groups that others have found, in their order.
  bool number(std::span<const GroupKeys> groups, std::vector<std::uint32_t>& codes);

  std::int64_t groups() const { return groups_; }
  std::vector<GroupKeys>& keys() { return found_; }

 private:
  struct Range {
    Shape shape;
    std::int64_t low = 0;    // of place 1; that of null is 0
    std::uint64_t span = 0;  // the greatest distance from it
    bool is_known = false;   // else there were nulls only
    std::uint64_t places() const { return span + 2; }
  };

  void set_key(std::size_t key, const GroupKeys& groups, std::size_t first, std::size_t count,
               Register& out) const;
  bool cover(std::span<const Register* const> keys, std::int32_t count);
  void rebuild();
  std::uint64_t places() const;

  std::vector<Range> ranges_;
  std::vector<GroupKeys> found_;
  std::vector<std::uint32_t> table_;  // a group's number + 1, or 0
  std::int64_t groups_ = 0;
};

}  // namespace bamquery
