#include "engine/native/keys/grouping/ordered_grouping.hpp"

#include <algorithm>
#include <array>

#include "engine/native/keys/grouping/key_words.hpp"
#include "engine/native/keys/grouping/number_table.hpp"

namespace bamquery {
namespace {

using Leaders = std::vector<std::int64_t>;

// By a table of all codes: numbers from 1 on, 0 where there is none yet.
Leaders number_by_place(const RowCodes& row_codes, std::span<const KeyColumn> columns, std::int64_t rows,
                        const GroupLimit& limit, std::int32_t* codes) {
  ZeroedTable<std::int32_t> table(row_codes.count());
  Leaders leaders;
  std::array<std::uint64_t, kBlockRows> places;
  for (std::int64_t start = 0; start < rows && !limit.stops(leaders.size()); start += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - start);
    row_codes.encode_own(columns, start, count, places.data());
    for (std::int64_t i = 0; i < count; ++i) {
      std::int32_t& number = table[places[static_cast<std::size_t>(i)]];
      if (number == 0) {
        leaders.push_back(start + i);
        number = static_cast<std::int32_t>(leaders.size());
      }
      codes[start + i] = number - 1;
    }
  }
  return leaders;
}

// Numbers for a block of keys whose tags and hashes are known.
template <typename IsSame, typename Added>
void number_block(NumberTable& table, Leaders& leaders, std::int64_t start, std::int64_t count,
                  const std::uint64_t* tags, const std::uint64_t* hashes, IsSame&& is_same, Added&& added,
                  std::int32_t* codes) {
  const bool ahead = table.is_large();
  for (std::int64_t i = 0; i < count; ++i) {
    if (ahead && i + NumberTable::kAhead < count) table.prefetch(hashes[i + NumberTable::kAhead]);
    NumberTable::Slot& slot = table.find(hashes[i], tags[i], [&](std::uint32_t n) { return is_same(i, n); });
    if (slot.number == 0) {
      leaders.push_back(start + i);
      added(i);
      slot = {tags[i], static_cast<std::uint32_t>(leaders.size())};
    }
    codes[start + i] = static_cast<std::int32_t>(slot.number) - 1;
  }
}

Leaders number_by_code(const RowCodes& row_codes, std::span<const KeyColumn> columns, std::int64_t rows,
                       const GroupLimit& limit, std::int32_t* codes) {
  NumberTable table(rows);
  Leaders leaders;
  std::array<std::uint64_t, kBlockRows> tags, hashes;
  const auto is_same = [](std::int64_t, std::uint32_t) { return true; };
  for (std::int64_t start = 0; start < rows && !limit.stops(leaders.size()); start += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - start);
    table.reserve_block(leaders.size(), start, rows, hash_word);
    row_codes.encode_own(columns, start, count, tags.data());
    std::transform(tags.begin(), tags.begin() + count, hashes.begin(), hash_word);
    number_block(
        table, leaders, start, count, tags.data(), hashes.data(), is_same, [](std::int64_t) {}, codes);
  }
  return leaders;
}

Leaders number_by_words(std::span<const KeyColumn> columns, std::int64_t rows, const GroupLimit& limit,
                        std::int32_t* codes) {
  const KeyWords keys(columns);
  const std::size_t size = keys.size();
  NumberTable table(rows);
  Leaders leaders;
  std::vector<std::uint64_t> held, words(static_cast<std::size_t>(kBlockRows) * size);
  std::array<std::uint64_t, kBlockRows> hashes;
  const auto own = [&](std::int64_t i) { return words.data() + static_cast<std::size_t>(i) * size; };
  const auto is_same = [&](std::int64_t i, std::uint32_t number) {
    return std::equal(own(i), own(i) + size, held.data() + number * size);
  };
  const auto added = [&](std::int64_t i) { held.insert(held.end(), own(i), own(i) + size); };
  for (std::int64_t start = 0; start < rows && !limit.stops(leaders.size()); start += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - start);
    table.reserve_block(leaders.size(), start, rows, [](std::uint64_t hash) { return hash; });
    keys.read(start, count, words.data());
    keys.hash(words.data(), count, hashes.data());
    number_block(table, leaders, start, count, hashes.data(), hashes.data(), is_same, added, codes);
  }
  return leaders;
}

}  // namespace

std::vector<std::int64_t> number_in_order(const RowCodes* row_codes, std::span<const KeyColumn> columns,
                                          std::int64_t rows, const GroupLimit& limit, std::int32_t* codes) {
  if (row_codes == nullptr) return number_by_words(columns, rows, limit, codes);
  // Pages of a table for all would be touched for the few rows until it is given up.
  const std::int64_t sure = limit.passed == nullptr ? rows : 0;
  if (row_codes->has_place_each(sure)) return number_by_place(*row_codes, columns, rows, limit, codes);
  return number_by_code(*row_codes, columns, rows, limit, codes);
}

}  // namespace bamquery
