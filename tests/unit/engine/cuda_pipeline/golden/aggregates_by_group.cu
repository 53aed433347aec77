#include "engine/kernels/pipeline/cells.hpp"

namespace bamquery {

struct Inputs {
  Input column[4];
};
struct Constants {
  Word word[3];
};

extern "C" __global__ void __launch_bounds__(256)
    program(Inputs inputs, Constants constants, const int* codes, Word rows, unsigned groups,
            Cells cells, bool in_block, unsigned* status) {
  extern __shared__ Word block_words[];
  bool lost = false;
  const Cells to = in_block ? Cells{block_words, 1, 6} : cells;
  const Word mine = in_block ? static_cast<Word>(groups) * 6 : 0;
  for (Word i = threadIdx.x; i < mine; i += blockDim.x) {
    Word first = 0;
    if (i % 6 == 5) first = (-0x7fffffffffffffffll - 1);
    block_words[i] = first;
  }
  __syncthreads();
  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;
  const Word start = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (Word at = start; at < rows; at += step) {
    const Word group = codes == nullptr ? 0 : codes[at];
    const Value r0 = load<Decimal, false>(inputs.column[0], at, lost);
    const Value r1 = {constants.word[0], true};
    const Value r2 = load<Decimal, false>(inputs.column[1], at, lost);
    const Value r3 = subtract(r1, r2, lost);
    const Value r4 = multiply(r0, r3, lost);
    const Value r5 = load<Double, true>(inputs.column[2], at, lost);
    const Value r6 = load<int, false>(inputs.column[3], at, lost);
    const Value r7 = year(r6, lost);
    const Value r8 = {constants.word[1], true};
    const Flag r9 = equal(r7, r8);
    const Value r10 = {constants.word[2], true};
    const Flag r11 = less_equal_doubles(r10, r5);
    const Flag r12 = logical_and(r9, r11);
    Shared::count(to.at(0, group));
    if (r12.is) {
      Shared::count(to.at(1, group));
      Shared::sum(to.at(2, group), to.of_word, r4.word);
    }
    if (r5.valid) {
      Shared::count(to.at(4, group));
      Shared::greatest(to.at(5, group), ordered_word(r5.word));
    }
  }
  __syncthreads();
  for (Word i = threadIdx.x; i < mine; i += blockDim.x) {
    Word* const cell = cells.at(i % 6, i / 6);
    switch (i % 6) {
      case 5:
        Shared::greatest(cell, block_words[i]);
        break;
      default:
        add_word(cell, block_words[i]);
    }
  }
  if (lost) *status = 1;
}

}  // namespace bamquery
