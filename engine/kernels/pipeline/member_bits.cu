// Sets of whole numbers, as selections look them up.
#include "engine/kernels/pipeline/selection.hpp"

namespace bamquery {

/// Sets the bit of each of `count` numbers; all bits are zero before, and all numbers within them.
extern "C" __global__ void __launch_bounds__(256)
    set_members(const Word* numbers, Word count, Word first, unsigned* bits) {
  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;
  for (Word i = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Word at = static_cast<Word>(static_cast<Unsigned>(numbers[i]) - static_cast<Unsigned>(first));
    atomicOr(bits + (at >> 5), 1u << (at & 31));
  }
}

}  // namespace bamquery
