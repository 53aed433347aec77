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
  unsigned nulls0 = 0;
  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;
  const Word first = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (Word row = first; (row & ~31ll) < rows; row += step) {
    const bool here = row < rows;
    const Word at = here ? row : rows - 1;
    const Value r0 = load<Decimal, false>(inputs.column[0], at, lost);
    const Value r1 = {constants.word[0], true};
    const Value r2 = load<Decimal, true>(inputs.column[1], at, lost);
    const Value r3 = subtract(r1, r2, lost);
    const Value r4 = multiply(r0, r3, lost);
    if (here) store_value<Decimal>(outputs.column[0], row, r4.word);
    nulls0 += store_valid(outputs.column[0], row, r4.valid, here);
  }
  if (lost) *status = 1;
  add_up(nulls0, status + 1);
}

}  // namespace bamquery
