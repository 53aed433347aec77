#include "engine/kernels/pipeline/selection.hpp"

namespace bamquery {

struct Inputs {
  Input column[3];
};
struct Constants {
  Word word[2];
};
struct Sets {
  Members of[1];
};

extern "C" __global__ void __launch_bounds__(256)
    program(Inputs inputs, Constants constants, Sets sets, Word rows,
            unsigned* bits, unsigned* counts, unsigned* status) {
  bool lost = false;
  const unsigned lane = threadIdx.x & 31;
  const Word warps = blockDim.x / 32;
  for (Word vector = blockIdx.x * warps + threadIdx.x / 32; vector * 1024 < rows;
       vector += gridDim.x * warps) {
    unsigned mine = 0;
    for (unsigned i = 0; i < 32; ++i) {
      const Word row = vector * 1024 + i * 32 + lane;
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
      bool is = here && r7.is;
      is = is && is_member(sets.of[0], load<Word, true>(inputs.column[2], at, lost));
      const unsigned word = __ballot_sync(~0u, is);
      if (lane == i) mine = word;
    }
    store_vector(bits, counts, vector, mine);
  }
  if (lost) *status = 1;
}

}  // namespace bamquery
