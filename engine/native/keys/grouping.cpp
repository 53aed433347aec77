#include "engine/native/keys/grouping.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/native/keys/hash_words.hpp"
#include "engine/native/keys/row_codes.hpp"
#include "engine/native/keys/zeroed_table.hpp"

namespace bamquery {
namespace {

using Leaders = std::vector<std::int64_t>;

// Entries for each row up to which a table by code takes no more memory than one of hashes, and a size that
// always is worth it.
constexpr std::uint64_t kSparsest = 16, kSmallTable = 1 << 16;
// Slots from which a table leaves the second cache, and rows that a slot is asked for ahead.
constexpr std::uint64_t kPrefetchedSlots = 1 << 15;
constexpr std::int64_t kAhead = 16;
// How many times more keys a table that is full is made for, and the part of the rows that tells better.
constexpr std::uint64_t kGrowth = 2;
constexpr std::int64_t kSample = 16;
// Keys for each row beyond which nearly all rows have different ones, and halvings of what is unknown.
constexpr double kMostKeysEach = 64;
constexpr int kSteps = 24;

// By a table of all codes: numbers from 1 on, 0 where there is none yet.
Leaders group_by_place(const RowCodes& row_codes, std::span<const KeyColumn> columns, std::int64_t rows,
                       std::int32_t* codes) {
  ZeroedTable<std::int32_t> table(row_codes.count());
  Leaders leaders;
  std::array<std::uint64_t, kBlockRows> places;
  for (std::int64_t start = 0; start < rows; start += kBlockRows) {
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

// How many different keys rows have together if `held` were among the first `seen`, and each row had one of a
// number of keys by chance. Of n rows and k keys, k * (1 - exp(-n / k)) are different.
std::uint64_t expected_keys(std::uint64_t held, std::int64_t seen, std::int64_t rows) {
  const auto different = [](double keys, std::int64_t drawn) {
    return -keys * std::expm1(-static_cast<double>(drawn) / keys);
  };
  double fewest = static_cast<double>(held), most = kMostKeysEach * static_cast<double>(rows);
  for (int step = 0; step < kSteps; ++step) {
    const double keys = std::sqrt(fewest * most);
    (different(keys, seen) < static_cast<double>(held) ? fewest : most) = keys;
  }
  return static_cast<std::uint64_t>(different(most, rows));
}

// An open-addressed table of numbers, from 1 on, beside what tells most keys apart.
class NumberTable {
 public:
  struct Slot {
    std::uint64_t tag;  // a code, or a hash of several words
    std::uint32_t number;
  };

  explicit NumberTable(std::int64_t rows) {
    resize(slots_for(static_cast<std::uint64_t>(std::min(rows, 2 * kBlockRows))));
  }

  // Makes room for a block of other keys where `held` ones are there after `seen` of `rows` rows; `hash_of`
  // gives the hash of a tag.
  template <typename HashOf>
  void reserve_block(std::uint64_t held, std::int64_t seen, std::int64_t rows, HashOf&& hash_of) {
    const std::uint64_t needed = held + static_cast<std::uint64_t>(kBlockRows);
    if (2 * needed <= mask_ + 1) return;
    std::uint64_t expected = kGrowth * needed;
    if (seen > rows / kSample) {  // enough to tell how many the others have: each table costs its pages
      expected = std::max(needed, expected_keys(held, seen, rows));
    }
    const auto before = std::move(slots_);
    const std::uint64_t slots = mask_ + 1;
    resize(slots_for(expected));
    for (std::uint64_t i = 0; i < slots; ++i) {
      if (before[i].number == 0) continue;
      std::uint64_t at = hash_of(before[i].tag) & mask_;
      while (slots_[at].number != 0) at = (at + 1) & mask_;
      slots_[at] = before[i];
    }
  }

  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_], 1); }
  bool is_large() const { return mask_ >= kPrefetchedSlots; }

  // The slot of a key, or a free one for it; `is_same` compares further where tags are equal.
  template <typename IsSame>
  Slot& find(std::uint64_t hash, std::uint64_t tag, IsSame&& is_same) {
    std::uint64_t at = hash & mask_;
    while (slots_[at].number != 0 && !(slots_[at].tag == tag && is_same(slots_[at].number - 1))) {
      at = (at + 1) & mask_;
    }
    return slots_[at];
  }

 private:
  void resize(std::uint64_t slots) {
    slots_ = ZeroedTable<Slot>(slots);
    mask_ = slots - 1;
  }

  ZeroedTable<Slot> slots_;
  std::uint64_t mask_ = 0;
};

// Numbers for a block of keys whose tags and hashes are known.
template <typename IsSame, typename Added>
void number_block(NumberTable& table, Leaders& leaders, std::int64_t start, std::int64_t count,
                  const std::uint64_t* tags, const std::uint64_t* hashes, IsSame&& is_same, Added&& added,
                  std::int32_t* codes) {
  const bool ahead = table.is_large();
  for (std::int64_t i = 0; i < count; ++i) {
    if (ahead && i + kAhead < count) table.prefetch(hashes[i + kAhead]);
    NumberTable::Slot& slot = table.find(hashes[i], tags[i], [&](std::uint32_t n) { return is_same(i, n); });
    if (slot.number == 0) {
      leaders.push_back(start + i);
      added(i);
      slot = {tags[i], static_cast<std::uint32_t>(leaders.size())};
    }
    codes[start + i] = static_cast<std::int32_t>(slot.number) - 1;
  }
}

Leaders group_by_code(const RowCodes& row_codes, std::span<const KeyColumn> columns, std::int64_t rows,
                      std::int32_t* codes) {
  NumberTable table(rows);
  Leaders leaders;
  std::array<std::uint64_t, kBlockRows> tags, hashes;
  const auto is_same = [](std::int64_t, std::uint32_t) { return true; };
  for (std::int64_t start = 0; start < rows; start += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - start);
    table.reserve_block(leaders.size(), start, rows, hash_word);
    row_codes.encode_own(columns, start, count, tags.data());
    std::transform(tags.begin(), tags.begin() + count, hashes.begin(), hash_word);
    number_block(
        table, leaders, start, count, tags.data(), hashes.data(), is_same, [](std::int64_t) {}, codes);
  }
  return leaders;
}

// Keys of several words: those of each column, and a bit for each that is null.
class KeyWords {
 public:
  explicit KeyWords(std::span<const KeyColumn> columns) : columns_(columns) {
    for (const KeyColumn& column : columns) values_ += column.width == 16 ? 2 : 1;
    words_ = values_ + (columns.size() + 63) / 64;
  }

  std::size_t size() const { return words_; }

  // Those of some rows, one row's after the other.
  void read(std::int64_t start, std::int64_t count, std::uint64_t* words) const {
    std::fill_n(words, static_cast<std::size_t>(count) * words_, 0);
    std::size_t place = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const KeyColumn& column = columns_[c];
      with_values(column, [&]<typename T>(Values<T> values) {
        for (std::int64_t i = 0; i < count; ++i) {
          std::uint64_t* own = words + static_cast<std::size_t>(i) * words_;
          if (!column.valid[start + i]) {
            own[values_ + c / 64] |= 1ULL << (c % 64);
            continue;
          }
          const T value = values[start + i];
          own[place] = word_of(value);
          if constexpr (sizeof(T) == 16) {
            own[place + 1] = static_cast<std::uint64_t>(static_cast<UnsignedInt128>(value) >> 64);
          }
        }
      });
      place += column.width == 16 ? 2 : 1;
    }
  }

 private:
  std::span<const KeyColumn> columns_;
  std::size_t values_ = 0, words_ = 0;
};

Leaders group_by_words(std::span<const KeyColumn> columns, std::int64_t rows, std::int32_t* codes) {
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
  for (std::int64_t start = 0; start < rows; start += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - start);
    table.reserve_block(leaders.size(), start, rows, [](std::uint64_t hash) { return hash; });
    keys.read(start, count, words.data());
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint64_t hash = 0;
      for (std::size_t w = 0; w < size; ++w) hash = hash_word(hash + own(i)[w]);
      hashes[static_cast<std::size_t>(i)] = hash;
    }
    number_block(table, leaders, start, count, hashes.data(), hashes.data(), is_same, added, codes);
  }
  return leaders;
}

}  // namespace

std::vector<std::int64_t> group_rows(std::span<const KeyColumn> columns, std::int64_t rows,
                                     std::int32_t* codes) {
  std::vector<bool> has_nulls;
  for (const KeyColumn& column : columns) has_nulls.push_back(column.has_nulls());
  const auto row_codes = RowCodes::fit(columns, has_nulls);
  if (!row_codes) return group_by_words(columns, rows, codes);
  const std::uint64_t dense = kSparsest * static_cast<std::uint64_t>(rows);
  if (row_codes->count() - 1 < std::max(dense, kSmallTable)) {  // 0 of them are all that 64 bits have
    return group_by_place(*row_codes, columns, rows, codes);
  }
  return group_by_code(*row_codes, columns, rows, codes);
}

}  // namespace bamquery
