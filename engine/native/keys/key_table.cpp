#include "engine/native/keys/key_table.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>

#include "engine/native/keys/hash_words.hpp"
#include "engine/native/keys/row_shares.hpp"
#include "engine/native/keys/rows_by_key.hpp"

namespace bamquery {
namespace {

// Codes for each row up to which a bit for every one takes no more memory than hashes, and how many always
// are worth it.
constexpr std::uint64_t kSparsest = 128, kSmallTable = 1 << 18;
// Codes of which a place each stays in the first two caches.
constexpr std::uint64_t kFewCodes = 1 << 14;
// Rows that a place in memory is asked for ahead.
constexpr std::int64_t kAhead = 16;
// Rows that are looked up before it is asked whether there are pairs enough.
constexpr std::int64_t kStepRows = 1 << 18;

// What one thread has seen of its rows.
struct alignas(64) SeenRows {
  std::uint64_t usable = 0, first = 0, last = 0;
  bool repeats = false, is_sorted = true;
};

// Rows of each key, rounded up.
std::int64_t mean_rows(std::uint64_t rows, std::uint64_t keys) {
  return keys == 0 ? 1 : static_cast<std::int64_t>((rows + keys - 1) / keys);
}

}  // namespace

std::optional<KeyTable> KeyTable::make(std::span<const KeyColumn> columns, std::int64_t rows,
                                       const std::vector<bool>& nulls_equal) {
  auto codes = RowCodes::fit(columns, nulls_equal);
  if (!codes) return std::nullopt;
  KeyTable table(std::move(*codes));
  table.columns_ = columns.size();
  const std::uint64_t dense = std::max(kSparsest * static_cast<std::uint64_t>(rows), kSmallTable);
  table.is_dense_ = table.codes_.count() - 1 < dense;  // 0 of them are all that 64 bits have
  if (table.is_dense_) {
    table.build_bits(columns, rows);
  } else {
    table.build_slots(columns, rows);
  }
  return table;
}

// Calls `use` with blocks, as long as it returns true: the first row counted from `start`, how many, their
// codes and which of them can be equal to others.
template <typename Use>
void KeyTable::each_usable(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                           Use&& use) const {
  std::array<std::uint64_t, kBlockRows> codes;
  std::array<std::uint8_t, kBlockRows> usable;
  for (std::int64_t done = 0; done < rows; done += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, rows - done);
    codes_.encode(columns, start + done, count, codes.data(), usable.data());
    if (!use(done, count, codes.data(), usable.data())) return;
  }
}

// Sets the bits of all codes, and finds whether they repeat and are in order; gives how many rows are usable.
std::uint64_t KeyTable::set_bits(std::span<const KeyColumn> columns, std::int64_t rows, std::int64_t shares) {
  std::vector<SeenRows> seen(static_cast<std::size_t>(shares));
  const auto see = [&]<bool kShared>(SeenRows& all, std::int64_t first, std::int64_t own_rows) {
    SeenRows own;
    each_usable(
        columns, first, own_rows,
        [&](std::int64_t, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
          for (std::int64_t i = 0; i < count; ++i) {
            if (usable[i] == 0) continue;
            std::uint64_t& bits = words_[codes[i] / 64].bits;
            const std::uint64_t bit = 1ULL << (codes[i] % 64);
            std::uint64_t before = bits;
            if constexpr (kShared) {  // nothing else is handed over by it
              before = std::atomic_ref(bits).fetch_or(bit, std::memory_order_relaxed);
            } else {
              bits |= bit;
            }
            own.repeats |= (before & bit) != 0;
            if (own.usable++ == 0) own.first = codes[i];
            own.is_sorted = own.is_sorted && codes[i] >= own.last;
            own.last = codes[i];
          }
          return true;
        });
    all = own;
  };
  if (shares == 1) {
    see.template operator()<false>(seen[0], 0, rows);
  } else {
    share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
      see.template operator()<true>(seen[static_cast<std::size_t>(share)], first, count);
    });
  }
  std::uint64_t usable = 0, last = 0;
  is_sorted_ = true;
  for (const SeenRows& own : seen) {
    usable += own.usable;
    is_unique_ = is_unique_ && !own.repeats;
    is_sorted_ = is_sorted_ && own.is_sorted && (own.usable == 0 || own.first >= last);
    last = own.usable != 0 ? own.last : last;
  }
  is_sorted_ = is_sorted_ && usable == static_cast<std::uint64_t>(rows);
  return usable;
}

// Writes how many bits are set before each word; gives how many there are.
std::uint64_t KeyTable::count_bits() {
  const auto words = static_cast<std::int64_t>(words_.size());
  const std::int64_t shares = worth_shares(words);
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(shares) + 1);
  const auto each_word = [&](std::int64_t first, std::int64_t count, auto&& use) {
    for (Word* word = words_.data() + first; word != words_.data() + first + count; ++word) use(*word);
  };
  share_items(words, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::uint64_t found = 0;
    each_word(first, count,
              [&](const Word& word) { found += static_cast<std::uint64_t>(std::popcount(word.bits)); });
    counts[static_cast<std::size_t>(share) + 1] = found;
  });
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  share_items(words, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    std::uint64_t before = counts[static_cast<std::size_t>(share)];
    each_word(first, count, [&](Word& word) {
      word.before = before;
      before += static_cast<std::uint64_t>(std::popcount(word.bits));
    });
  });
  return counts.back();
}

void KeyTable::build_bits(std::span<const KeyColumn> columns, std::int64_t rows) {
  words_ = ZeroedTable<Word>((codes_.count() + 63) / 64);
  const std::int64_t shares = worth_shares(rows);
  const std::uint64_t usable_rows = set_bits(columns, rows, shares);
  const std::uint64_t keys = count_bits();
  const auto each_rank = [&](auto&& use) {
    share_items(rows, shares, kBlockRows, [&](std::int64_t, std::int64_t first, std::int64_t own_rows) {
      each_usable(columns, first, own_rows,
                  [&](std::int64_t start, std::int64_t count, const std::uint64_t* codes,
                      const std::uint8_t* usable) {
                    for (std::int64_t i = 0; i < count; ++i) {
                      if (usable[i] != 0)
                        use(words_[codes[i] / 64].rank(codes[i]),
                            static_cast<std::uint32_t>(first + start + i));
                    }
                    return true;
                  });
    });
  };
  if (is_unique_ && codes_.count() <= kFewCodes) {
    rows_.assign(codes_.count(), kNone);
    each_usable(
        columns, 0, rows,
        [&](std::int64_t start, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
          for (std::int64_t i = 0; i < count; ++i) {
            if (usable[i] != 0) rows_[codes[i]] = static_cast<std::uint32_t>(start + i);
          }
          return true;
        });
    words_ = ZeroedTable<Word>();
    return;
  }
  rows_each_ = mean_rows(usable_rows, keys);
  if (is_unique_) {
    if (is_sorted_) return;
    order_ = ZeroedTable<std::uint32_t>(keys);
    each_rank([&](std::uint64_t rank, std::uint32_t row) { order_[rank] = row; });
    return;
  }
  // Counted two places further, so that what is the end of a code's rows once all are placed is their
  // beginning until then.
  begins_.resize(keys + 2);
  ZeroedTable<std::uint32_t> ranks(is_sorted_ ? 0 : static_cast<std::uint64_t>(rows));
  std::fill_n(ranks.data(), ranks.size(), kNoKey);
  const auto note_rank = [&]<bool kShared>(std::uint64_t rank, std::uint32_t row) {
    std::uint32_t& found = begins_[rank + 2];
    if constexpr (kShared) {
      std::atomic_ref(found).fetch_add(1, std::memory_order_relaxed);  // ended threads hand it over
    } else {
      ++found;
    }
    if (!is_sorted_) ranks[row] = static_cast<std::uint32_t>(rank);
  };
  if (shares == 1) {
    each_rank(
        [&](std::uint64_t rank, std::uint32_t row) { note_rank.template operator()<false>(rank, row); });
  } else {
    each_rank([&](std::uint64_t rank, std::uint32_t row) { note_rank.template operator()<true>(rank, row); });
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  if (is_sorted_) {
    begins_.erase(begins_.begin());
    return;
  }
  order_ = ZeroedTable<std::uint32_t>(usable_rows);
  place_rows({ranks.data(), ranks.size()}, begins_, order_.data(), shares);
}

void KeyTable::build_slots(std::span<const KeyColumn> columns, std::int64_t rows) {
  slots_ = ZeroedTable<Slot>(slots_for(static_cast<std::uint64_t>(rows)));
  mask_ = slots_.size() - 1;
  const auto each_slot = [&](auto&& use) {
    each_usable(
        columns, 0, rows,
        [&](std::int64_t start, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
          for (std::int64_t i = 0; i < count; ++i) {
            if (i + kAhead < count) {
              __builtin_prefetch(&slots_[hash_word(codes[i + kAhead]) & mask_], 1);
            }
            if (usable[i] == 0) continue;
            std::uint64_t at = hash_word(codes[i]) & mask_;
            while (slots_[at].count != 0 && slots_[at].code != codes[i]) at = (at + 1) & mask_;
            use(slots_[at], codes[i], static_cast<std::uint32_t>(start + i));
          }
          return true;
        });
  };
  std::uint64_t usable_rows = 0, keys = 0;
  each_slot([&](Slot& slot, std::uint64_t code, std::uint32_t row) {
    if (slot.count == 0) {
      slot = {code, row, 0};
      ++keys;
    }
    ++slot.count;
    ++usable_rows;
  });
  is_unique_ = keys == usable_rows;
  rows_each_ = mean_rows(usable_rows, keys);
  if (is_unique_) return;
  std::uint32_t begin = 0;
  for (Slot& slot : slots_) {
    slot.first = begin;
    begin += slot.count;
  }
  order_ = ZeroedTable<std::uint32_t>(usable_rows);
  // `first` goes through a key's rows, and then back.
  each_slot([&](Slot& slot, std::uint64_t, std::uint32_t row) { order_[slot.first++] = row; });
  for (Slot& slot : slots_) slot.first -= slot.count;
}

std::int64_t KeyTable::nbytes() const {
  return static_cast<std::int64_t>(words_.size() * sizeof(Word) + slots_.size() * sizeof(Slot) +
                                   (begins_.size() + rows_.size() + order_.size()) * sizeof(std::uint32_t));
}

void KeyTable::find_by_bits(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable,
                            std::uint32_t* firsts, std::uint32_t* counts) const {
  if (!rows_.empty()) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t unusable = std::uint32_t{usable[i]} - 1;  // all bits, which is `kNone`
      firsts[i] = rows_[codes[i]] | unusable;
      usable[i] = firsts[i] != kNone ? 1 : 0;
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {  // what is not usable has code 0
    const Word& word = words_[codes[i] / 64];
    usable[i] = static_cast<std::uint8_t>(usable[i] & static_cast<std::uint8_t>(word.has(codes[i])));
    firsts[i] = usable[i] != 0 ? static_cast<std::uint32_t>(word.rank(codes[i])) : kNone;
  }
  if (counts != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t rank = usable[i] != 0 ? firsts[i] : 0;
      firsts[i] = begins_[rank];
      counts[i] = usable[i] != 0 ? begins_[rank + 1] - begins_[rank] : 0;
    }
  } else if (!is_sorted_) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (usable[i] != 0) firsts[i] = order_[firsts[i]];
    }
  }
}

// Where the keys of a block are; `usable` tells afterwards which of them were found.
void KeyTable::find_block(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable,
                          std::uint32_t* firsts, std::uint32_t* counts) const {
  if (is_dense_) return find_by_bits(count, codes, usable, firsts, counts);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(&slots_[hash_word(codes[i + kAhead]) & mask_]);
    std::uint64_t at = hash_word(codes[i]) & mask_;
    while (slots_[at].count != 0 && slots_[at].code != codes[i]) at = (at + 1) & mask_;
    usable[i] = usable[i] != 0 && slots_[at].count != 0 ? 1 : 0;
    firsts[i] = usable[i] != 0 ? slots_[at].first : kNone;
    if (counts != nullptr) counts[i] = usable[i] != 0 ? slots_[at].count : 0;
  }
}

KeyTable::Lookup KeyTable::look_up(std::span<const KeyColumn> columns, std::int64_t start, std::int64_t rows,
                                   std::int64_t pairs) const {
  const std::int64_t first = std::min(rows, kStepRows);
  Lookup found = look_up_first(columns, start, first, pairs);
  if (found.rows < first) return found;
  // Where few rows have partners, a portion is of more rows: each one that is given costs its taker the same.
  while (found.rows < rows) {
    const std::int64_t more = std::min(rows - found.rows, kStepRows);
    if (found.pairs + more * found.pairs / found.rows > pairs) break;
    if (found.parts.empty()) found.parts.push_back({0, found.rows, found.pairs});
    if (!look_up_more(found, columns, start, more, pairs)) break;
  }
  return found;
}

KeyTable::Lookup KeyTable::look_up_first(std::span<const KeyColumn> columns, std::int64_t start,
                                         std::int64_t rows, std::int64_t pairs) const {
  // Where keys repeat so that there will be more pairs, all rows but those of this portion would be for
  // nothing.
  if (rows <= pairs / rows_each_ && worth_shares(rows) > 1) {
    Lookup found;
    if (look_up_more(found, columns, start, rows, pairs)) return found;
  }
  Lookup found;
  each_usable(columns, start, rows,
              [&](std::int64_t done, std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable) {
                found.firsts.resize(static_cast<std::size_t>(done + count));
                if (!is_unique_) found.counts.resize(found.firsts.size());
                std::uint32_t* counts = is_unique_ ? nullptr : found.counts.data() + done;
                find_block(count, codes, usable, found.firsts.data() + done, counts);
                for (std::int64_t i = 0; i < count; ++i) {
                  const std::int64_t own = counts != nullptr ? counts[i] : usable[i];
                  if (found.pairs + own > pairs && found.rows > 0) return false;
                  found.pairs += own;
                  ++found.rows;
                }
                return true;
              });
  return found;
}

// The next rows, by several threads; false, and none of them, where all have more than `pairs` pairs then.
bool KeyTable::look_up_more(Lookup& found, std::span<const KeyColumn> columns, std::int64_t start,
                            std::int64_t rows, std::int64_t pairs) const {
  const std::int64_t before = found.rows;
  found.firsts.resize(static_cast<std::size_t>(before + rows));
  if (!is_unique_) found.counts.resize(found.firsts.size());
  const std::int64_t shares = worth_shares(rows);
  std::vector<Lookup::Part> parts(static_cast<std::size_t>(shares));
  share_items(rows, shares, kBlockRows, [&](std::int64_t share, std::int64_t first, std::int64_t own_rows) {
    Lookup::Part& part = parts[static_cast<std::size_t>(share)];
    const std::int64_t row = before + first;
    std::int64_t own_pairs = 0;
    each_usable(columns, start + row, own_rows,
                [&](std::int64_t done, std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable) {
                  std::uint32_t* counts = is_unique_ ? nullptr : found.counts.data() + row + done;
                  find_block(count, codes, usable, found.firsts.data() + row + done, counts);
                  for (std::int64_t i = 0; i < count; ++i) {
                    own_pairs += counts != nullptr ? counts[i] : usable[i];
                  }
                  return true;
                });
    part = {row, own_rows, own_pairs};
  });
  std::int64_t all = found.pairs;
  for (const Lookup::Part& part : parts) all += part.pairs;
  if (all > pairs) return false;
  found.rows += rows;
  found.pairs = all;
  found.parts.insert(found.parts.end(), parts.begin(), parts.end());
  return true;
}

void KeyTable::mark(std::span<const KeyColumn> columns, std::int64_t rows, std::uint8_t* marks) const {
  share_items(rows, worth_shares(rows), kBlockRows, [&](std::int64_t, std::int64_t start, std::int64_t own) {
    std::array<std::uint32_t, kBlockRows> firsts, counts;
    each_usable(columns, start, own,
                [&](std::int64_t done, std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable) {
                  find_block(count, codes, usable, firsts.data(), is_unique_ ? nullptr : counts.data());
                  std::copy_n(usable, count, marks + start + done);
                  return true;
                });
  });
}

void KeyTable::write_pairs(const Lookup& lookup, std::int64_t start, std::int64_t* positions,
                           std::int64_t* found) const {
  if (lookup.parts.empty())
    return write_part(lookup, {0, lookup.rows, lookup.pairs}, start, positions, found);
  std::vector<std::int64_t> begins;
  std::int64_t before = 0;
  for (const Lookup::Part& part : lookup.parts) {
    begins.push_back(before);
    before += part.pairs;
  }
  share_parts(static_cast<std::int64_t>(lookup.parts.size()), [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    write_part(lookup, lookup.parts[at], start, positions + begins[at], found + begins[at]);
  });
}

void KeyTable::write_part(const Lookup& lookup, const Lookup::Part& part, std::int64_t start,
                          std::int64_t* positions, std::int64_t* found) const {
  if (is_unique_) {
    std::int64_t written = 0;
    for (std::int64_t row = part.row; written < part.pairs; ++row) {
      const std::uint32_t first = lookup.firsts[static_cast<std::size_t>(row)];
      positions[written] = start + row;  // stays if the row has a partner: no branch that is hard to foresee
      found[written] = first;
      written += first != kNone ? 1 : 0;
    }
    return;
  }
  for (std::int64_t row = part.row; row < part.row + part.rows; ++row) {
    const std::uint32_t first = lookup.firsts[static_cast<std::size_t>(row)];
    const std::uint32_t count = lookup.counts[static_cast<std::size_t>(row)];
    for (std::uint32_t i = 0; i < count; ++i) {
      *positions++ = start + row;
      *found++ = is_sorted_ ? first + i : order_[first + i];
    }
  }
}

}  // namespace bamquery
