// Work of one call, shared with threads of its query that nobody needs at the moment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace bamquery {

/// How many threads could share what the calling one does now, itself included.
int sharing_threads();

/// Parts that `items` are worth: each has `least` of them at least, and no thread has none.
inline std::int64_t worth_parts(std::int64_t items, std::int64_t least) {
  return std::clamp<std::int64_t>(items / std::max<std::int64_t>(least, 1), 1, sharing_threads());
}

/// Calls `work(part)` for each of `parts`, on this thread and on as many others as are free; returns once all
/// is done. They begin in order. Raises what the first of them to fail has raised; parts that have not begun
/// by then are left out.
void share_parts(std::int64_t parts, const std::function<void(std::int64_t part)>& work);

/// Calls `work(part, first, count)` for each of `parts` parts of `items`, all but the last of a multiple of
/// `block` items.
template <typename Work>
void share_items(std::int64_t items, std::int64_t parts, std::int64_t block, Work&& work) {
  const std::int64_t blocks = (items + block - 1) / block;
  const auto begin_of = [&](std::int64_t part) { return std::min(blocks * part / parts * block, items); };
  share_parts(parts, [&](std::int64_t part) {
    const std::int64_t first = begin_of(part);
    work(part, first, begin_of(part + 1) - first);
  });
}

}  // namespace bamquery
