#include "engine/kernels/pipeline/cells.hpp"

namespace bamquery {

struct Inputs {
  Input column[2];
};
struct Constants {
  Word word[2];
};
struct Outputs {
  Output column[1];
};

extern "C" __global__ void __launch_bounds__(256)
    program(Inputs inputs, Constants constants, Outputs outputs, Word rows, unsigned* status) {
  bool lost = false;
  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;
  const Word first = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (Word row = first; (row & ~31ll) < rows; row += step) {
    const bool here = row < rows;
    const Word at = here ? row : rows - 1;
    const Value r0 = load<int, false>(inputs.column[0], at, lost);
    const Value r1 = year(r0, lost);
    const Value r2 = {constants.word[0], true};
    const Flag r3 = equal(r1, r2);
    const Value r4 = load<Double, false>(inputs.column[1], at, lost);
    const Value r5 = {constants.word[1], true};
    const Flag r6 = less_equal_doubles(r5, r4);
    const Flag r7 = logical_and(r3, r6);
    if (here) store_value<unsigned char>(outputs.column[0], row, r7.is ? 1 : 0);
  }
  if (lost) *status = 1;
}

}  // namespace bamquery
