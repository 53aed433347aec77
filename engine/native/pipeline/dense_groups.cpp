#include "engine/native/pipeline/dense_groups.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

// Places of a table that is no larger than the second cache.
constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 16;

struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();
};

BAMQUERY_CLONES Bounds bounds_of(const std::int64_t* words, std::int32_t count) {
  Bounds found;
  for (std::int32_t i = 0; i < count; ++i) {
    found.low = std::min(found.low, words[i]);
    found.high = std::max(found.high, words[i]);
  }
  return found;
}

// Whether all are within a range: about half of what it takes to find their own.
BAMQUERY_CLONES bool are_within(const std::int64_t* words, std::int32_t count, std::int64_t low,
                                std::uint64_t span) {
  const auto first = static_cast<std::uint64_t>(low);
  std::uint64_t outside = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint64_t from = static_cast<std::uint64_t>(words[i]) - first;
    outside |= from | (span - from);  // the highest bit of one of them is set, as their sum is the span
  }
  return outside >> 63 == 0;
}

Bounds bounds_of(const Register& key, std::int32_t count) {
  if (key.all_valid) return bounds_of(key.words.data(), count);
  Bounds found;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (key.valid[i] == 0) continue;
    found.low = std::min(found.low, key.words[i]);
    found.high = std::max(found.high, key.words[i]);
  }
  return found;
}

std::uint64_t distance(std::int64_t high, std::int64_t low) {
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}

// The places of keys follow those of the keys before; what is not null is within the range.
BAMQUERY_CLONES void add_words(const std::int64_t* words, std::int32_t count, std::int64_t low,
                               std::uint32_t places, std::uint32_t* codes) {
  const auto first = static_cast<std::uint32_t>(low) - 1;  // in 32 bits, since differences are small
  for (std::int32_t i = 0; i < count; ++i) {
    codes[i] = codes[i] * places + (static_cast<std::uint32_t>(words[i]) - first);
  }
}

BAMQUERY_CLONES void add_valid_words(const std::int64_t* words, const std::uint8_t* valid, std::int32_t count,
                                     std::int64_t low, std::uint32_t places, std::uint32_t* codes) {
  const auto first = static_cast<std::uint32_t>(low) - 1;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (static_cast<std::uint32_t>(words[i]) - first) & (0u - valid[i]);
    codes[i] = codes[i] * places + place;
  }
}

void add_flags(const Register& key, std::int32_t count, std::uint32_t places, std::uint32_t* codes) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    codes[i] = codes[i] * places + is_valid(key, i) * (1u + key.flags[i]);
  }
}

}  // namespace

DenseGroups::DenseGroups(std::span<const Shape> shapes) : found_(shapes.size()) {
  for (const Shape shape : shapes) {
    Range range{shape};
    if (shape == Shape::kFlags) {
      range.span = 1;
      range.is_known = true;
    }
    ranges_.push_back(range);
  }
}

std::uint64_t DenseGroups::places() const {
  std::uint64_t all = 1;
  for (const Range& range : ranges_) {
    if (range.span >= kMostPlaces) return kMostPlaces + 1;
    all = std::min(all * range.places(), kMostPlaces + 1);
  }
  return all;
}

// Makes the ranges hold a batch's keys, and the table those of the ranges.
bool DenseGroups::cover(std::span<const Register* const> keys, std::int32_t count) {
  std::vector<Range> before;  // of a table that grows
  bool grows = table_.empty();
  for (std::size_t k = 0; k < keys.size(); ++k) {
    Range& range = ranges_[k];
    if (range.shape == Shape::kFlags) continue;
    const bool is_whole = keys[k]->all_valid && range.is_known && range.span < kMostPlaces;
    if (is_whole && are_within(keys[k]->words.data(), count, range.low, range.span)) continue;
    const Bounds found = bounds_of(*keys[k], count);
    if (found.low > found.high) continue;
    const std::int64_t low = range.is_known ? std::min(range.low, found.low) : found.low;
    const std::int64_t high =
        range.is_known ? std::max(range.low + static_cast<std::int64_t>(range.span), found.high) : found.high;
    if (range.is_known && low == range.low && distance(high, low) == range.span) continue;
    if (before.empty()) before = ranges_;
    grows = true;
    range.is_known = true;
    range.low = low;
    range.span = distance(high, low);
  }
  if (!grows) return true;
  if (before.empty()) before = ranges_;
  if (places() > kMostPlaces) return false;
  // Half as far again on both sides, where there is room: keys that ascend would make a table a batch.
  const std::vector<Range> tight = ranges_;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    Range& range = ranges_[k];
    if (range.shape == Shape::kFlags || !range.is_known) continue;
    const bool is_same = before[k].is_known && before[k].low == range.low && before[k].span == range.span;
    const std::uint64_t room = is_same ? 0 : range.span / 2;
    const auto least = distance(range.low, std::numeric_limits<std::int64_t>::min());
    const auto most = distance(std::numeric_limits<std::int64_t>::max(), range.low) - range.span;
    range.low -= static_cast<std::int64_t>(std::min(room, least));
    range.span += std::min(room, least) + std::min(room, most);
  }
  if (places() > kMostPlaces) ranges_ = tight;
  rebuild();
  return true;
}

void DenseGroups::rebuild() {
  table_.assign(places(), 0);
  for (std::int64_t group = 0; group < groups_; ++group) {
    const auto at = static_cast<std::size_t>(group);
    std::uint64_t code = 0;
    for (std::size_t k = 0; k < ranges_.size(); ++k) {
      const std::uint64_t place =
          found_[k].valid[at] == 0 ? 0 : distance(found_[k].words[at], ranges_[k].low) + 1;
      code = code * ranges_[k].places() + place;
    }
    table_[code] = static_cast<std::uint32_t>(group + 1);
  }
}

bool DenseGroups::number(std::span<const Register* const> keys, std::int32_t count, std::uint32_t* codes) {
  if (!cover(keys, count)) return false;
  std::fill_n(codes, count, 0u);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const Register& key = *keys[k];
    const Range& range = ranges_[k];
    const auto places = static_cast<std::uint32_t>(range.places());
    if (range.shape == Shape::kFlags) {
      add_flags(key, count, places, codes);
    } else if (key.all_valid) {
      add_words(key.words.data(), count, range.low, places, codes);
    } else {
      add_valid_words(key.words.data(), key.valid.data(), count, range.low, places, codes);
    }
  }
  for (std::int32_t i = 0; i < count; ++i) {
    std::uint32_t& number = table_[codes[i]];
    if (number == 0) {
      const auto row = static_cast<std::size_t>(i);
      for (std::size_t k = 0; k < keys.size(); ++k) {
        const bool flags = ranges_[k].shape == Shape::kFlags;
        found_[k].words.push_back(flags ? keys[k]->flags[row] : keys[k]->words[row]);
        found_[k].valid.push_back(is_valid(*keys[k], row));
      }
      number = static_cast<std::uint32_t>(++groups_);
    }
    codes[i] = number - 1;
  }
  return true;
}

void DenseGroups::set_key(std::size_t key, const GroupKeys& groups, std::size_t first, std::size_t count,
                          Register& out) const {
  const std::int64_t* const words = groups.words.data() + first;
  if (ranges_[key].shape == Shape::kFlags) {
    std::transform(words, words + count, out.flags.begin(),
                   [](std::int64_t word) { return static_cast<std::uint8_t>(word); });
  } else {
    std::copy_n(words, count, out.words.begin());
  }
  std::copy_n(groups.valid.data() + first, count, out.valid.begin());
  out.all_valid = false;
}

bool DenseGroups::number(std::span<const GroupKeys> groups, std::vector<std::uint32_t>& codes) {
  const std::size_t all = groups.front().words.size();
  const auto registers = std::make_unique_for_overwrite<Register[]>(groups.size());
  std::vector<const Register*> keys;
  for (std::size_t k = 0; k < groups.size(); ++k) keys.push_back(&registers[k]);
  codes.resize(all);
  for (std::size_t first = 0; first < all; first += kProgramRows) {
    const std::size_t count = std::min<std::size_t>(kProgramRows, all - first);
    for (std::size_t k = 0; k < groups.size(); ++k) set_key(k, groups[k], first, count, registers[k]);
    if (!number(keys, static_cast<std::int32_t>(count), codes.data() + first)) return false;
  }
  return true;
}

}  // namespace bamquery
