// Where rows of a join's build side are found by their keys.
#pragma once

#include "engine/kernels/keys/key_columns.hpp"

namespace bamquery {

inline constexpr uint32_t kNobody = ~0u;  // Of a place that no key has yet, and of a row without a partner.

/// A word and the first row that has it.
struct alignas(16) WordPlace {
  unsigned long long word;
  uint32_t row;
  uint32_t unused;
};

inline constexpr unsigned long long kNoWord = ~0ull;  // Of a place that no word has yet.

/// Of one column of at most 8 bytes a value, without nulls: each word is beside its row. The places are
/// `mask` + 1, and one behind them is for the word that stands for none. All bits are set at first.
struct WordTable {
  WordPlace* places;
  uint32_t mask;
  uint32_t unused;

  __device__ uint64_t first_place(unsigned long long word) const {
    return word == kNoWord ? static_cast<uint64_t>(mask) + 1 : mix_key(word) & mask;
  }

  __device__ uint64_t next_place(uint64_t place) const { return (place + 1) & mask; }

  /// The first row that has the word.
  __device__ uint32_t find(unsigned long long word) const {
    uint64_t place = first_place(word);
    while (true) {
      const WordPlace there = places[place];
      if (there.word == word) return there.row;  // the place of the last word has kNobody, if nobody has it
      if (there.word == kNoWord) return kNobody;
      place = next_place(place);
    }
  }
};

/// Rows of any keys, each the first of its key: `mask` + 1 places, all bits of which are set at first.
struct RowTable {
  uint32_t* places;
  uint32_t mask;
  uint32_t unequal;  ///< A bit for each column whose nulls equal nothing.
};

/// Some rows of a list, one behind the other.
struct Run {
  uint32_t begin;
  uint32_t end;
};

/// How many pairs a probe row becomes: `alone` where nobody has its key, else as many as the run of the first
/// row that has it, or where there are no runs, `partner`.
struct PairRule {
  const Run* runs;
  uint32_t alone;
  uint32_t partner;

  __device__ uint64_t count(uint32_t first) const {
    if (first == kNobody) return alone;
    return runs == nullptr ? partner : runs[first].end - runs[first].begin;
  }
};

}  // namespace bamquery
