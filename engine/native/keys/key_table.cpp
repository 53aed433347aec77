#include "engine/native/keys/key_table.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/native/keys/hash_words.hpp"

namespace bamquery {
namespace {

// Places for each row up to which one for every code is worth it, and how many always are.
constexpr std::uint64_t kSparsest = 16, kSmallTable = 1 << 16;
// Rows that a place in memory is asked for ahead.
constexpr std::int64_t kAhead = 16;

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
    table.build_places(columns, rows);
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

void KeyTable::build_places(std::span<const KeyColumn> columns, std::int64_t rows) {
  places_ = ZeroedTable<std::uint32_t>(codes_.count());
  each_usable(
      columns, 0, rows,
      [&](std::int64_t start, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
        for (std::int64_t i = 0; i < count && is_unique_; ++i) {
          if (usable[i] == 0) continue;
          is_unique_ = places_[codes[i]] == 0;
          places_[codes[i]] = static_cast<std::uint32_t>(start + i + 1);
        }
        return is_unique_;
      });
  if (is_unique_) return;
  // Counted two places further, so that what is the end of a code's rows once all are placed is their
  // beginning until then.
  places_ = ZeroedTable<std::uint32_t>(codes_.count() + 2);
  std::uint64_t usable_rows = 0;
  each_usable(columns, 0, rows,
              [&](std::int64_t, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
                for (std::int64_t i = 0; i < count; ++i) {
                  places_[codes[i] + 2] += usable[i];
                  usable_rows += usable[i];
                }
                return true;
              });
  std::partial_sum(places_.begin(), places_.end(), places_.begin());
  order_.resize(usable_rows);
  each_usable(
      columns, 0, rows,
      [&](std::int64_t start, std::int64_t count, const std::uint64_t* codes, const std::uint8_t* usable) {
        for (std::int64_t i = 0; i < count; ++i) {
          if (usable[i] == 0) continue;
          order_[places_[codes[i] + 1]++] = static_cast<std::uint32_t>(start + i);
        }
        return true;
      });
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
  if (is_unique_) return;
  std::uint32_t begin = 0;
  for (Slot& slot : slots_) {
    slot.first = begin;
    begin += slot.count;
  }
  order_.resize(usable_rows);
  // `first` goes through a key's rows, and then back.
  each_slot([&](Slot& slot, std::uint64_t, std::uint32_t row) { order_[slot.first++] = row; });
  for (Slot& slot : slots_) slot.first -= slot.count;
}

std::int64_t KeyTable::nbytes() const {
  return static_cast<std::int64_t>(places_.size() * sizeof(std::uint32_t) + slots_.size() * sizeof(Slot) +
                                   order_.size() * sizeof(std::uint32_t));
}

// Where the keys of a block are; `usable` tells afterwards which of them were found.
void KeyTable::find_block(std::int64_t count, const std::uint64_t* codes, std::uint8_t* usable,
                          std::uint32_t* firsts, std::uint32_t* counts) const {
  if (is_dense_) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (counts != nullptr) {
        firsts[i] = places_[codes[i]];
        counts[i] = usable[i] != 0 ? places_[codes[i] + 1] - firsts[i] : 0;
      } else {
        const std::uint32_t place = usable[i] != 0 ? places_[codes[i]] : 0;
        firsts[i] = place - 1;  // of 0 it is none
        usable[i] = place != 0 ? 1 : 0;
      }
    }
    return;
  }
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

void KeyTable::write_pairs(const Lookup& lookup, std::int64_t start, std::int64_t* positions,
                           std::int64_t* found) const {
  if (is_unique_) {
    std::int64_t written = 0;
    for (std::int64_t row = 0; written < lookup.pairs; ++row) {
      const std::uint32_t first = lookup.firsts[static_cast<std::size_t>(row)];
      positions[written] = start + row;  // stays if the row has a partner: no branch that is hard to foresee
      found[written] = first;
      written += first != kNone ? 1 : 0;
    }
    return;
  }
  for (std::int64_t row = 0; row < lookup.rows; ++row) {
    const std::uint32_t first = lookup.firsts[static_cast<std::size_t>(row)];
    const std::uint32_t count = lookup.counts[static_cast<std::size_t>(row)];
    for (std::uint32_t i = 0; i < count; ++i) {
      *positions++ = start + row;
      *found++ = order_[first + i];
    }
  }
}

}  // namespace bamquery
