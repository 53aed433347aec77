#include "engine/native/keys/grouping/shared_grouping.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/native/keys/grouping/ordered_grouping.hpp"
#include "engine/native/keys/grouping/place_grouping.hpp"
#include "engine/native/keys/grouping/range_grouping.hpp"
#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

using Leaders = std::vector<std::int64_t>;

// Rows of a share for each group up to which shares number their own rows: putting their groups together is
// little then.
constexpr std::int64_t kRowsEach = 64;
// Threads that are faster together than one where each row has a code: they do about twice as much.
constexpr std::int64_t kLeastByCode = 3;
// Codes that 32 bits have room for.
constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 32;

// The keys of some rows, as columns of their own.
class PickedKeys {
 public:
  PickedKeys(std::span<const KeyColumn> columns, const Leaders& rows) {
    for (const KeyColumn& column : columns) {
      const auto width = static_cast<std::size_t>(column.width);
      auto& values = values_.emplace_back(rows.size() * width);
      auto& bits = bits_.emplace_back((rows.size() + 7) / 8);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<std::size_t>(rows[i]);
        std::memcpy(values.data() + i * width, column.data + row * width, width);
        bits[i / 8] |= static_cast<std::uint8_t>((column.valid[rows[i]] ? 1 : 0) << (i % 8));
      }
      KeyColumn& own = columns_.emplace_back(column);
      own.data = values.data();
      own.rows = static_cast<std::int64_t>(rows.size());
      if (column.has_nulls()) own.valid = {bits.data(), 0};
    }
  }

  std::span<const KeyColumn> columns() const { return columns_; }

 private:
  std::vector<std::vector<std::byte>> values_;
  std::vector<std::vector<std::uint8_t>> bits_;
  std::vector<KeyColumn> columns_;
};

// Each share numbers its rows, and groups of all are numbered by their first rows' keys. Nothing where there
// are many.
std::optional<Leaders> number_few(const RowCodes* row_codes, std::span<const KeyColumn> columns,
                                  std::int64_t rows, std::int64_t shares, std::int32_t* codes) {
  std::vector<Leaders> own(static_cast<std::size_t>(shares));
  std::atomic<bool> are_many = false;
  const GroupLimit limit{static_cast<std::size_t>(rows / shares / kRowsEach), &are_many};
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::vector<KeyColumn> slices;
    for (const KeyColumn& column : columns) slices.push_back(column.slice(first, count));
    Leaders& found = own[static_cast<std::size_t>(share)];
    found = number_in_order(row_codes, slices, count, limit, codes + first);
    if (limit.stops(found.size())) return;
    for (std::int64_t& row : found) row += first;
  });
  if (are_many) return std::nullopt;
  Leaders all;
  std::vector<std::size_t> begins;
  for (const Leaders& some : own) {
    begins.push_back(all.size());
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<std::int32_t> numbers(all.size());
  const PickedKeys picked(columns, all);
  const auto groups = static_cast<std::int64_t>(all.size());
  Leaders leaders = number_in_order(row_codes, picked.columns(), groups, {}, numbers.data());
  for (std::int64_t& leader : leaders) leader = all[static_cast<std::size_t>(leader)];
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    const auto at = static_cast<std::size_t>(share);
    const std::int32_t* const known = numbers.data() + begins[at];
    std::int32_t next = 0;
    if (std::all_of(known, known + own[at].size(), [&](std::int32_t number) { return number == next++; })) {
      return;
    }
    for (std::int32_t* code = codes + first; code != codes + first + count; ++code) *code = known[*code];
  });
  return leaders;
}

}  // namespace

std::vector<std::int64_t> number_by_shares(const RowCodes* row_codes, std::span<const KeyColumn> columns,
                                           std::int64_t rows, std::int64_t shares, std::int32_t* codes) {
  if (auto leaders = number_few(row_codes, columns, rows, shares, codes)) return *std::move(leaders);
  if (row_codes == nullptr) return number_by_hashes(columns, rows, shares, codes);
  if (shares < kLeastByCode) return number_in_order(row_codes, columns, rows, {}, codes);
  if (row_codes->has_place_each(rows) && row_codes->count() <= kMostPlaces) {
    return number_by_place(*row_codes, columns, rows, shares, codes);
  }
  return number_by_codes(*row_codes, columns, rows, shares, codes);
}

}  // namespace bamquery
