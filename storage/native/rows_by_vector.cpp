#include "storage/native/rows_by_vector.hpp"

#include <algorithm>
#include <cstddef>

#include "storage/native/statistics.hpp"

namespace bamquery {
namespace {

// Rows that are looked at one by one: where they are few there are no more. Then the end is searched for in
// steps that double.
constexpr std::size_t kNear = 4;

// The first row behind `begin` that does not lie in the same vector.
std::size_t end_of_vector(std::span<const std::int64_t> rows, std::size_t begin) {
  const std::int64_t vector = rows[begin] / kVectorRows;
  const auto is_beyond = [&](std::size_t place) { return rows[place] / kVectorRows != vector; };
  const std::size_t most = std::min(rows.size(), begin + static_cast<std::size_t>(kVectorRows));
  std::size_t low = begin + 1;
  for (const std::size_t near = std::min(most, low + kNear); low < near; ++low) {
    if (is_beyond(low)) return low;
  }
  std::size_t high = most;
  for (std::size_t step = kNear; low + step < most; step *= 2) {
    if (is_beyond(low + step)) {
      high = low + step;
      break;
    }
    low += step + 1;
  }
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (is_beyond(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

VectorsOfRows rows_by_vector(std::span<const std::int64_t> rows) {
  VectorsOfRows found;
  if (rows.empty()) return found;
  const auto spanned = static_cast<std::size_t>(
      std::max<std::int64_t>(rows.back() / kVectorRows - rows.front() / kVectorRows + 1, 1));
  found.vectors.reserve(std::min(spanned, rows.size()));
  found.counts.reserve(std::min(spanned, rows.size()));
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = end_of_vector(rows, begin);
    found.vectors.push_back(rows[begin] / kVectorRows);
    found.counts.push_back(static_cast<std::int64_t>(end - begin));
    begin = end;
  }
  return found;
}

}  // namespace bamquery
