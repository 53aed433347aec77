#include "engine/native/keys/grouping/grouping.hpp"

#include "engine/native/keys/grouping/ordered_grouping.hpp"
#include "engine/native/keys/grouping/shared_grouping.hpp"
#include "engine/native/keys/row_codes.hpp"
#include "engine/native/keys/row_shares.hpp"

namespace bamquery {

std::vector<std::int64_t> group_rows(std::span<const KeyColumn> columns, std::int64_t rows,
                                     std::int32_t* codes) {
  std::vector<bool> has_nulls;
  for (const KeyColumn& column : columns) has_nulls.push_back(column.has_nulls());
  const auto row_codes = RowCodes::fit(columns, has_nulls);
  const RowCodes* const given = row_codes ? &*row_codes : nullptr;
  const std::int64_t shares = worth_shares(rows);
  if (shares == 1) return number_in_order(given, columns, rows, {}, codes);
  return number_by_shares(given, columns, rows, shares, codes);
}

}  // namespace bamquery
