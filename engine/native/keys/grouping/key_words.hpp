// Keys of several columns as words that are compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/keys/hash_words.hpp"
#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// Keys of several words: those of each column, and a bit for each that is null.
class KeyWords {
 public:
  explicit KeyWords(std::span<const KeyColumn> columns) : columns_(columns) {
    for (const KeyColumn& column : columns) values_ += column.width == 16 ? 2 : 1;
    words_ = values_ + (columns.size() + 63) / 64;
  }

  /// Words of a row.
  std::size_t size() const { return words_; }

  /// Those of some rows, one row's after the other.
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

  /// A hash of each of `count` rows' words.
  void hash(const std::uint64_t* words, std::int64_t count, std::uint64_t* hashes) const {
    for (std::int64_t i = 0; i < count; ++i, words += words_) {
      std::uint64_t hash = 0;
      for (std::size_t w = 0; w < words_; ++w) hash = hash_word(hash + words[w]);
      hashes[i] = hash;
    }
  }

  /// Whether two rows have the same keys.
  bool are_same(std::int64_t one, std::int64_t other) const {
    return std::ranges::all_of(columns_, [&](const KeyColumn& column) {
      const bool is_valid = column.valid[one];
      if (is_valid != column.valid[other]) return false;
      bool same = true;
      with_values(column, [&](const auto values) { same = !is_valid || values[one] == values[other]; });
      return same;
    });
  }

 private:
  std::span<const KeyColumn> columns_;
  std::size_t values_ = 0, words_ = 0;
};

}  // namespace bamquery
