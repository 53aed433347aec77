#include "engine/native/columns/gather.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "driver/native/threads/shared_work.hpp"

namespace bamquery {
namespace {

// Rows whose places are read once for all columns.
constexpr std::int64_t kBlock = 1024;
// Values, and strings, that are worth another thread.
constexpr std::int64_t kLeastRows = 1 << 15, kLeastStrings = 1 << 13;

// Places of a block, in 64 bits; of null ones 0.
class PlaceReader {
 public:
  explicit PlaceReader(const Places& places) : places_(places) {}

  const std::int64_t* read(std::int64_t start, std::int64_t count) {
    const auto first = static_cast<std::size_t>(start);
    if (places_.width == 8) {
      const std::byte* const from = places_.data + first * sizeof(std::int64_t);
      if (places_.valid.all_set()) return reinterpret_cast<const std::int64_t*>(from);
      std::memcpy(own_.data(), from, static_cast<std::size_t>(count) * sizeof(std::int64_t));
    } else {
      const auto* const from = reinterpret_cast<const std::int32_t*>(places_.data) + first;
      std::copy(from, from + count, own_.begin());
    }
    if (!places_.valid.all_set()) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (!places_.valid[start + i]) own_[static_cast<std::size_t>(i)] = 0;
      }
    }
    return own_.data();
  }

 private:
  const Places& places_;
  std::array<std::int64_t, kBlock> own_;
};

bool are_inside(const std::int64_t* places, std::int64_t count, std::int64_t rows) {
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    inside &= static_cast<std::uint64_t>(places[i]) < static_cast<std::uint64_t>(rows);
  }
  return inside;
}

// Bits of a block, whose first one begins a byte; returns how many are set.
template <typename IsSet>
std::int64_t write_bits(std::int64_t count, std::uint8_t* bits, IsSet&& is_set) {
  std::int64_t set = 0;
  for (std::int64_t first = 0; first < count; first += 8) {
    const std::int64_t some = std::min<std::int64_t>(8, count - first);
    unsigned byte = 0;
    for (std::int64_t i = 0; i < some; ++i) byte |= (is_set(first + i) ? 1U : 0U) << i;
    bits[first / 8] = static_cast<std::uint8_t>(byte);
    set += std::popcount(byte);
  }
  return set;
}

std::int64_t gather_validity(Bits valid, const Places& places, const std::int64_t* own, std::int64_t start,
                             std::int64_t count, std::uint8_t* bitmap) {
  std::uint8_t* const bits = bitmap + start / 8;
  if (valid.all_set()) {
    return count - copy_bits({places.valid.data, places.valid.offset + start}, count, bits, 0);
  }
  return count -
         write_bits(count, bits, [&](std::int64_t i) { return places.valid[start + i] && valid[own[i]]; });
}

struct Wide {
  std::uint64_t words[2];
};

template <typename T>
void gather_block(const std::byte* values, const std::int64_t* places, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value;  // of 16 bytes those of Arrow may lie at multiples of 8
    std::memcpy(&value, values + static_cast<std::size_t>(places[i]) * sizeof value, sizeof value);
    std::memcpy(out + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
  }
}

void gather_block(const FixedColumn& column, const std::int64_t* places, std::int64_t start,
                  std::int64_t count, std::byte* out) {
  if (column.bits == 1) {
    auto* const bits = reinterpret_cast<std::uint8_t*>(out) + start / 8;
    write_bits(count, bits, [&](std::int64_t i) { return column.flags[places[i]]; });
    return;
  }
  out += static_cast<std::size_t>(start) * static_cast<std::size_t>(column.bits / 8);
  switch (column.bits) {
    case 8:
      return gather_block<std::uint8_t>(column.values, places, count, out);
    case 16:
      return gather_block<std::uint16_t>(column.values, places, count, out);
    case 32:
      return gather_block<std::uint32_t>(column.values, places, count, out);
    case 64:
      return gather_block<std::uint64_t>(column.values, places, count, out);
    default:
      return gather_block<Wide>(column.values, places, count, out);
  }
}

// Blocks of the places, with what they are, until `use` says that it is enough.
template <typename Use>
void each_block(const Places& places, std::int64_t first, std::int64_t count, Use&& use) {
  PlaceReader reader(places);
  for (std::int64_t start = first; start < first + count; start += kBlock) {
    const std::int64_t block = std::min(kBlock, first + count - start);
    if (!use(reader.read(start, block), start, block)) return;
  }
}

}  // namespace

bool gather_values(std::span<const FixedColumn> columns, const Places& places,
                   std::span<GatheredColumn> gathered) {
  const std::int64_t rows = columns.empty() ? 0 : columns.front().rows;
  const std::int64_t parts =
      worth_parts(places.count * static_cast<std::int64_t>(columns.size()), kLeastRows);
  std::vector<std::vector<std::int64_t>> nulls(static_cast<std::size_t>(parts));
  std::atomic<bool> inside = true;
  share_items(places.count, parts, kBlock, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> own(columns.size());
    each_block(places, first, count, [&](const std::int64_t* at, std::int64_t start, std::int64_t block) {
      if (!are_inside(at, block, rows)) inside = false;
      if (!inside) return false;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const GatheredColumn& out = gathered[c];
        gather_block(columns[c], at, start, block, out.values);
        if (out.bitmap == nullptr) continue;
        own[c] += gather_validity(columns[c].valid, places, at, start, block, out.bitmap);
      }
      return true;
    });
    nulls[static_cast<std::size_t>(part)] = std::move(own);
  });
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (const auto& own : nulls) gathered[c].nulls += own[c];
  }
  return inside;
}

std::optional<std::int64_t> gather_offsets(const GivenStrings& column, const Places& places,
                                           std::int64_t* offsets, std::uint8_t* bitmap, std::int64_t& nulls) {
  const auto rows = static_cast<std::int64_t>(column.offsets.size()) - 1;
  const auto size = static_cast<std::int64_t>(column.data.size());
  const std::int64_t parts = worth_parts(places.count, kLeastStrings);
  std::vector<std::int64_t> before(static_cast<std::size_t>(parts) + 1);
  std::atomic<std::int64_t> missing = 0;
  std::atomic<bool> inside = true;
  share_items(places.count, parts, kBlock, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    std::int64_t end = 0;
    each_block(places, first, count, [&](const std::int64_t* at, std::int64_t start, std::int64_t block) {
      if (!are_inside(at, block, rows)) inside = false;
      if (!inside) return false;
      std::uint8_t* const bits = bitmap == nullptr ? nullptr : bitmap + start / 8;
      if (bits != nullptr) missing += gather_validity(column.valid, places, at, start, block, bitmap);
      bool ascend = true;
      for (std::int64_t i = 0; i < block; ++i) {
        const auto place = static_cast<std::size_t>(at[i]);
        const std::int64_t from = column.offsets[place], to = column.offsets[place + 1];
        ascend &= 0 <= from && from <= to && to <= size;
        offsets[start + i] = end;
        if (bits == nullptr || (bits[i / 8] >> (i % 8) & 1) != 0) end += to - from;
      }
      if (!ascend) inside = false;
      return ascend;
    });
    before[static_cast<std::size_t>(part) + 1] = end;
  });
  if (!inside) return std::nullopt;
  std::partial_sum(before.begin(), before.end(), before.begin());
  share_items(places.count, parts, kBlock, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    const std::int64_t own = before[static_cast<std::size_t>(part)];
    if (own == 0) return;
    for (std::int64_t* at = offsets + first; at != offsets + first + count; ++at) *at += own;
  });
  offsets[places.count] = before.back();
  nulls = missing;
  return before.back();
}

void gather_strings(const GivenStrings& column, const Places& places, const std::int64_t* offsets,
                    std::byte* data) {
  share_items(places.count, worth_parts(places.count, kLeastStrings), kBlock,
              [&](std::int64_t, std::int64_t first, std::int64_t count) {
                each_block(places, first, count,
                           [&](const std::int64_t* at, std::int64_t start, std::int64_t block) {
                             for (std::int64_t i = 0; i < block; ++i) {
                               const std::int64_t begin = offsets[start + i];
                               const auto bytes = static_cast<std::size_t>(offsets[start + i + 1] - begin);
                               const auto from = column.offsets[static_cast<std::size_t>(at[i])];
                               // Null ones have no bytes here; and no block of none may be looked at.
                               if (bytes != 0) std::memcpy(data + begin, column.data.data() + from, bytes);
                             }
                             return true;
                           });
              });
}

}  // namespace bamquery
