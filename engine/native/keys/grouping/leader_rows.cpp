#include "engine/native/keys/grouping/leader_rows.hpp"

#include <atomic>
#include <cstddef>
#include <numeric>

#include "driver/native/threads/shared_work.hpp"
#include "engine/native/keys/key_column.hpp"

namespace bamquery {

std::vector<std::int64_t> number_leaders(
    std::int64_t rows, std::int64_t shares, std::int32_t* codes,
    const std::function<void(std::int64_t share, std::int64_t first, std::int64_t count)>& find) {
  std::vector<std::int64_t> before(static_cast<std::size_t>(shares) + 1);
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    find(share, first, count);
    std::int64_t found = 0;
    for (std::int64_t row = first; row < first + count; ++row) found += codes[row] == row ? 1 : 0;
    before[static_cast<std::size_t>(share) + 1] = found;
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  std::vector<std::int64_t> leaders(static_cast<std::size_t>(before.back()));
  // First rows get their numbers, below 0 to be told from rows that are no number yet.
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::int64_t next = before[static_cast<std::size_t>(share)];
    for (std::int64_t row = first; row < first + count; ++row) {
      if (codes[row] != row) continue;
      leaders[static_cast<std::size_t>(next)] = row;
      codes[row] = static_cast<std::int32_t>(~next++);
    }
  });
  // One that another thread looks at is as it was before or as it is afterwards: both say the same.
  share_items(rows, shares, kBlockRows, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (std::int64_t row = first; row < first + count; ++row) {
      const std::int32_t own = codes[row];
      const std::int32_t found = own < 0 ? own : std::atomic_ref(codes[own]).load(std::memory_order_relaxed);
      std::atomic_ref(codes[row]).store(found < 0 ? ~found : found, std::memory_order_relaxed);
    }
  });
  return leaders;
}

}  // namespace bamquery
