#include "engine/native/keys/grouping/place_grouping.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>

#include "engine/native/keys/row_shares.hpp"
#include "engine/native/keys/zeroed_table.hpp"

namespace bamquery {
namespace {

using Leaders = std::vector<std::int64_t>;

// A row that was the first known of its group when it was looked at.
struct Candidate {
  std::uint32_t place;
  std::uint32_t row;
};

// The first row of each code, and then its group: threads fill it together.
class PlaceTable {
 public:
  explicit PlaceTable(std::uint64_t places) : first_(places) {}

  // Whether a row may be the first of its place; it is known as such, unless another thread forgets it.
  bool add(std::uint32_t place, std::uint32_t row) {
    const std::atomic_ref known(first_[place]);
    // Rows are known from 1 on; 0, where there is none yet, is made the greatest number.
    if (known.load(std::memory_order_relaxed) - 1 < row) return false;
    known.store(row + 1, std::memory_order_relaxed);
    return true;
  }

  // The first row of a place may have been forgotten for another one that was looked at in the same moment.
  // Of all that may be it, the least is known afterwards. To do so with every row would take three times as
  // long.
  void recall(const Candidate& one) {
    const std::atomic_ref known(first_[one.place]);
    std::uint32_t found = known.load(std::memory_order_relaxed);
    while (found > one.row + 1 &&
           !known.compare_exchange_weak(found, one.row + 1, std::memory_order_relaxed)) {
    }
  }

  void set_group(std::uint32_t place, std::uint32_t group) { first_[place] = group; }
  // What is known of a place: its group, or its first row, from 1 on.
  std::uint32_t operator[](std::uint32_t place) const { return first_[place]; }

 private:
  ZeroedTable<std::uint32_t> first_;
};

}  // namespace

std::vector<std::int64_t> number_by_place(const RowCodes& row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, std::int64_t shares, std::int32_t* codes) {
  PlaceTable table(row_codes.count());
  std::vector<std::vector<Candidate>> candidates(static_cast<std::size_t>(shares));
  const auto each_share = [&](auto&& use) {
    share_parts(shares, [&](std::int64_t share) { use(static_cast<std::size_t>(share)); });
  };
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::vector<Candidate> own;
    own.reserve(static_cast<std::size_t>(count));
    std::array<std::uint64_t, kBlockRows> places;
    for (std::int64_t start = first; start < first + count; start += kBlockRows) {
      const std::int64_t block = std::min(kBlockRows, first + count - start);
      row_codes.encode_own(columns, start, block, places.data());
      for (std::int64_t i = 0; i < block; ++i) {
        const auto place = static_cast<std::uint32_t>(places[static_cast<std::size_t>(i)]);
        const auto row = static_cast<std::uint32_t>(start + i);
        codes[row] = static_cast<std::int32_t>(place);
        if (table.add(place, row)) own.push_back({place, row});
      }
    }
    candidates[static_cast<std::size_t>(share)] = std::move(own);
  });
  std::vector<std::size_t> before(static_cast<std::size_t>(shares) + 1);
  std::atomic<bool> are_complete = false;
  while (!are_complete) {
    are_complete = true;
    each_share([&](std::size_t share) {
      auto& own = candidates[share];
      bool is_complete = true;
      std::erase_if(own, [&](const Candidate& one) {
        const std::uint32_t known = table[one.place];
        is_complete = is_complete && known <= one.row + 1;
        return known <= one.row;
      });
      before[share + 1] = own.size();
      if (!is_complete) are_complete = false;
    });
    if (are_complete) break;
    each_share([&](std::size_t share) {
      for (const Candidate& one : candidates[share]) table.recall(one);
    });
  }
  std::partial_sum(before.begin(), before.end(), before.begin());
  Leaders leaders(before.back());
  each_share([&](std::size_t share) {
    std::size_t next = before[share];
    for (const Candidate& one : candidates[share]) {
      table.set_group(one.place, static_cast<std::uint32_t>(next));
      leaders[next++] = one.row;
    }
  });
  share_items(rows, shares, kBlockRows, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (std::int32_t* code = codes + first; code != codes + first + count; ++code) {
      *code = static_cast<std::int32_t>(table[static_cast<std::uint32_t>(*code)]);
    }
  });
  return leaders;
}

}  // namespace bamquery
