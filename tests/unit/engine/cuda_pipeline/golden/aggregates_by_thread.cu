#include "engine/kernels/pipeline/cells.hpp"

namespace bamquery {

struct Inputs {
  Input column[4];
};
struct Constants {
  Word word[3];
};

extern "C" __global__ void __launch_bounds__(128)
    program(Inputs inputs, Constants constants, const int* codes, Word rows, unsigned groups,
            Cells cells, unsigned* status) {
  extern __shared__ Word block_words[];
  bool lost = false;
  const unsigned all = groups * 5;
  for (unsigned i = 0; i < all; ++i) {
    Word first = 0;
    if (i % 5 == 4) first = (-0x7fffffffffffffffll - 1);
    block_words[i * blockDim.x + threadIdx.x] = first;
  }
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
    Word* const own = block_words + group * 5 * blockDim.x + threadIdx.x;
    Own::count(&own[0 * blockDim.x]);
    if (r12.is) {
      Own::count(&own[1 * blockDim.x]);
      Own::sum(&own[2 * blockDim.x], r4.word, cells.at(2, group), cells.at(3, group));
    }
    if (r5.valid) {
      Own::count(&own[3 * blockDim.x]);
      Own::greatest(&own[4 * blockDim.x], ordered_word(r5.word));
    }
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = threadIdx.x / 32; i < all; i += blockDim.x / 32) {
    const Word* const mine = block_words + i * blockDim.x;
    switch (i % 5) {
      case 0:
        settle_count(mine, blockDim.x, lane, cells.at(0, i / 5));
        break;
      case 1:
        settle_count(mine, blockDim.x, lane, cells.at(1, i / 5));
        break;
      case 3:
        settle_count(mine, blockDim.x, lane, cells.at(4, i / 5));
        break;
      case 2:
        settle_sum(mine, blockDim.x, lane, cells.at(2, i / 5), cells.at(3, i / 5));
        break;
      case 4:
        settle_extreme<true>(mine, blockDim.x, lane, cells.at(5, i / 5));
        break;
    }
  }
  if (lost) *status = 1;
}

}  // namespace bamquery
