// Rows of a join's build side put into a table by their keys, and the first of them found for each probe row.
//
// Rows with a null that equals nothing are never in a table, and find nobody.
#include "engine/kernels/keys/join_table.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/strings/count_rows.hpp"

namespace bamquery {

namespace {

__device__ inline void note_repeated(uint32_t* repeated) {
  if (*repeated == 0) *repeated = 1;
}

/// What finding gives of a probe row: see join_find.
struct Finding {
  PairRule rule;
  uint32_t* found;
  uint8_t* flags;
  uint64_t* counts;
  uint64_t* tiles;
};

template <typename Find>
__device__ inline void find_rows(uint32_t rows, const Finding& finding, uint32_t nobody, const Find& find) {
  const auto find_row = [&](uint32_t row) {
    const uint32_t first = find(row);
    if (finding.found != nullptr) finding.found[row] = first == kNobody ? nobody : first;
    if (finding.flags != nullptr) finding.flags[row] = first != kNobody ? 1 : 0;
    return first;
  };
  if (finding.tiles == nullptr) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) find_row(row);
    return;
  }
  count_rows(rows, finding.counts, finding.tiles,
             [&](uint32_t row) -> uint64_t { return finding.rule.count(find_row(row)); });
}

}  // namespace

/// Build rows of one column of at most 8 bytes a value into a table; those that are null are left out.
/// `repeated` (zero before) becomes 1 where two rows have the same word.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_enter_words(const KeyColumn key, uint32_t rows, const WordTable table, uint32_t* repeated) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint64_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    if (is_null_key(key, row)) continue;
    const unsigned long long word = key_word(key, row);
    uint64_t place = table.first_place(word);
    while (word != kNoWord) {
      unsigned long long there = table.places[place].word;
      if (there == kNoWord) there = atomicCAS(&table.places[place].word, kNoWord, word);
      if (there == kNoWord || there == word) break;
      place = table.next_place(place);
    }
    const uint32_t own = static_cast<uint32_t>(row);
    uint32_t* const first = &table.places[place].row;
    const uint32_t before = *first > own ? atomicMin(first, own) : 0;
    if (before != kNobody) note_repeated(repeated);
  }
}

/// The same of any keys.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_enter_rows(const KeyColumns keys, uint32_t rows, const RowTable table, uint32_t* repeated) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint64_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    if (has_unequal_null(keys, row, table.unequal)) continue;
    const uint32_t own = static_cast<uint32_t>(row);
    uint64_t place = hash_row(keys, row) & table.mask;
    while (true) {
      uint32_t there = table.places[place];
      if (there == kNobody) {
        there = atomicCAS(table.places + place, kNobody, own);
        if (there == kNobody) break;
      }
      if (is_equal_row(keys, there, keys, row)) {
        if (own < there) atomicMin(table.places + place, own);
        note_repeated(repeated);
        break;
      }
      place = (place + 1) & table.mask;
    }
  }
}

/// For each probe row the first build row with its key, `nobody` where there is none: into `found`; whether
/// there is one: into `flags`; how many pairs it becomes by the rule: into `counts`, and of each 1,024 rows
/// together into `tiles`. All four may be null; without `tiles` nothing is counted.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_find_words(const KeyColumn key, uint32_t rows, const WordTable table, uint32_t nobody,
                    const PairRule rule, uint32_t* found, uint8_t* flags, uint64_t* counts, uint64_t* tiles) {
  find_rows(rows, {rule, found, flags, counts, tiles}, nobody,
            [&](uint32_t row) { return is_null_key(key, row) ? kNobody : table.find(key_word(key, row)); });
}

/// The same of any keys; `build` are those of the table.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_find_rows(const KeyColumns keys, uint32_t rows, const RowTable table, const KeyColumns build,
                   uint32_t nobody, const PairRule rule, uint32_t* found, uint8_t* flags, uint64_t* counts,
                   uint64_t* tiles) {
  find_rows(rows, {rule, found, flags, counts, tiles}, nobody, [&](uint32_t row) {
    if (has_unequal_null(keys, row, table.unequal)) return kNobody;
    uint64_t place = hash_row(keys, row) & table.mask;
    while (true) {
      const uint32_t there = table.places[place];
      if (there == kNobody || is_equal_row(build, there, keys, row)) return there;
      place = (place + 1) & table.mask;
    }
  });
}

/// The same of rows that are known by their own runs, which are empty for those without a partner.
extern "C" __global__ void __launch_bounds__(kThreads)
    join_find_runs(uint32_t rows, const PairRule rule, uint32_t nobody, uint32_t* found, uint64_t* counts,
                   uint64_t* tiles) {
  find_rows(rows, {rule, found, nullptr, counts, tiles}, nobody,
            [&](uint32_t row) { return rule.runs[row].begin == rule.runs[row].end ? kNobody : row; });
}

}  // namespace bamquery
