// Which rows fulfil conditions: a warp takes a vector of 1,024 rows, each lane remembers 32 of its bits.
#pragma once

#include "engine/kernels/pipeline/registers.hpp"

namespace bamquery {

/// A set of whole numbers: bit `number - first` is set for each, of `count` bits.
struct Members {
  const unsigned* bits;
  Word first;
  Word count;
};

__device__ inline bool is_member(const Members& members, Value value) {
  const Unsigned at = static_cast<Unsigned>(value.word) - static_cast<Unsigned>(members.first);
  return value.valid && at < static_cast<Unsigned>(members.count) &&
         is_set(members.bits, static_cast<Word>(at));
}

/// The vector's bits, of each lane one word, and how many are set.
__device__ inline void store_vector(unsigned* bits, unsigned* counts, Word vector, unsigned mine) {
  const unsigned lane = threadIdx.x & 31;
  bits[vector * 32 + lane] = mine;
  unsigned count = static_cast<unsigned>(__popc(mine));
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    count += __shfl_xor_sync(~0u, count, distance);
  }
  if (lane == 0) counts[vector] = count;
}

}  // namespace bamquery
