#include "engine/native/keys/group_strings.hpp"

#include <atomic>
#include <cstring>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

// A string within the data; null where it is not.
const std::byte* string_of(const StringRows& rows, std::int64_t row, std::int64_t& length) {
  const std::int64_t begin = rows.offsets[static_cast<std::size_t>(row)];
  const std::int64_t end = rows.offsets[static_cast<std::size_t>(row) + 1];
  if (begin < 0 || begin > end || end > rows.size) return nullptr;
  length = end - begin;
  return rows.data + begin;
}

// Of rows [begin, end).
bool are_same_within(const StringRows& rows, std::span<const std::int32_t> codes,
                     std::span<const std::int64_t> leaders, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::int64_t>(codes.size());
  for (std::int64_t row = begin; row < end; ++row) {
    const auto group = static_cast<std::uint32_t>(codes[static_cast<std::size_t>(row)]);
    if (group >= leaders.size()) return false;
    const std::int64_t leader = leaders[group];
    if (leader == row) continue;
    if (static_cast<std::uint64_t>(leader) >= static_cast<std::uint64_t>(count)) return false;
    const bool is_valid = rows.valid[row];
    if (is_valid != rows.valid[leader]) return false;
    if (!is_valid) continue;
    std::int64_t length = 0, own_length = 0;
    const std::byte* const first = string_of(rows, leader, length);
    const std::byte* const own = string_of(rows, row, own_length);
    if (first == nullptr || own == nullptr || length != own_length) return false;
    if (std::memcmp(first, own, static_cast<std::size_t>(length)) != 0) return false;
  }
  return true;
}

}  // namespace

bool are_same_strings(const StringRows& rows, std::span<const std::int32_t> codes,
                      std::span<const std::int64_t> leaders) {
  const auto count = static_cast<std::int64_t>(codes.size());
  std::atomic<bool> are_same = true;
  share_items(count, worth_shares(count), 1, [&](std::int64_t, std::int64_t first, std::int64_t own) {
    if (!are_same_within(rows, codes, leaders, first, first + own)) are_same = false;
  });
  return are_same;
}

}  // namespace bamquery
