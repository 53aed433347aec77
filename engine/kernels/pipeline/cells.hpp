// What aggregates of a program gather: cells of groups, and how rows and thread blocks add to them.
//
// A sum of whole numbers is two words: the low 32 bits of all numbers, and the rest of them. Neither can
// overflow for less than 2^31 numbers, and both are added to by atomic instructions of 64 bits.
#pragma once

#include "engine/kernels/pipeline/registers.hpp"

namespace bamquery {

/// Words of groups: word w of group g is at word[w * of_word + g * of_group].
struct Cells {
  Word* words;
  Word of_word;
  Word of_group;

  __device__ Word* at(unsigned word, Word group) const { return words + word * of_word + group * of_group; }
};

__device__ inline void add_word(Word* cell, Word more) {
  if (more != 0) atomicAdd(reinterpret_cast<Unsigned*>(cell), static_cast<Unsigned>(more));
}
__device__ inline Word low_half(Word word) { return word & 0xffffffffll; }
__device__ inline Word high_half(Word word) { return word >> 32; }

/// A double whose order is that of words: NaN is one, and the greatest.
__device__ inline Word ordered_word(Word bits) {
  const double number = __longlong_as_double(bits);
  if (number != number) bits = 0x7ff8000000000000ll;
  return bits ^ static_cast<Word>(static_cast<Unsigned>(bits >> 63) >> 1);
}

// What one row adds. Threads of other rows may be adding to the same cell.

struct Shared {
  __device__ static void count(Word* cell) { add_word(cell, 1); }
  __device__ static void sum(Word* cell, Word of_word, Word word) {
    add_word(cell, low_half(word));
    add_word(cell + of_word, high_half(word));
  }
  __device__ static void sum_double(Word* cell, Word bits) {
    atomicAdd(reinterpret_cast<double*>(cell), __longlong_as_double(bits));
  }
  __device__ static void least(Word* cell, Word word) {
    if (word < *cell) atomicMin(cell, word);
  }
  __device__ static void greatest(Word* cell, Word word) {
    if (word > *cell) atomicMax(cell, word);
  }
};

// The same of cells that are this thread's own. A sum that would overflow goes to the group's first.

struct Own {
  __device__ static void count(Word* cell) { ++*cell; }
  __device__ static void sum(Word* cell, Word word, Word* low, Word* high) {
    const Word before = *cell;
    const Word after = static_cast<Word>(static_cast<Unsigned>(before) + static_cast<Unsigned>(word));
    if (((before ^ after) & (word ^ after)) < 0) {
      add_word(low, low_half(before));
      add_word(high, high_half(before));
      *cell = word;
    } else {
      *cell = after;
    }
  }
  __device__ static void sum_double(Word* cell, Word bits) {
    *cell = __double_as_longlong(__dadd_rn(__longlong_as_double(*cell), __longlong_as_double(bits)));
  }
  __device__ static void least(Word* cell, Word word) {
    if (word < *cell) *cell = word;
  }
  __device__ static void greatest(Word* cell, Word word) {
    if (word > *cell) *cell = word;
  }
};

// What a warp's threads have in cells of their own, 32 apart or more, to the group's. Whole warps call.

template <typename T>
__device__ inline T warp_sum(T mine) {
  for (unsigned distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
  return mine;
}

__device__ inline void settle_count(const Word* own, unsigned threads, unsigned lane, Word* to) {
  Word mine = 0;
  for (unsigned i = lane; i < threads; i += 32) mine += own[i];
  mine = warp_sum(mine);
  if (lane == 0) add_word(to, mine);
}

__device__ inline void settle_sum(const Word* own, unsigned threads, unsigned lane, Word* low, Word* high) {
  Word lows = 0, highs = 0;
  for (unsigned i = lane; i < threads; i += 32) {
    lows += low_half(own[i]);
    highs += high_half(own[i]);
  }
  lows = warp_sum(lows);
  highs = warp_sum(highs);
  if (lane == 0) {
    add_word(low, lows);
    add_word(high, highs);
  }
}

__device__ inline void settle_double(const Word* own, unsigned threads, unsigned lane, Word* to) {
  double mine = 0;
  for (unsigned i = lane; i < threads; i += 32) mine += __longlong_as_double(own[i]);
  mine = warp_sum(mine);
  if (lane == 0 && mine != 0) atomicAdd(reinterpret_cast<double*>(to), mine);
}

template <bool kGreatest>
__device__ inline void settle_extreme(const Word* own, unsigned threads, unsigned lane, Word* to) {
  Word mine = own[lane];
  for (unsigned i = lane + 32; i < threads; i += 32) {
    if (kGreatest ? own[i] > mine : own[i] < mine) mine = own[i];
  }
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    const Word other = __shfl_xor_sync(~0u, mine, distance);
    if (kGreatest ? other > mine : other < mine) mine = other;
  }
  if (lane != 0) return;
  if (kGreatest) {
    atomicMax(to, mine);
  } else {
    atomicMin(to, mine);
  }
}

}  // namespace bamquery
