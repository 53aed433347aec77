// Rows in groups by keys that are places in small dictionaries: a cell for each combination, and no table.
#include "engine/kernels/keys/key_columns.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

/// A key: of a row that is not null, `numbers[place]` (null: the place itself) is below `size`, which is the
/// number of rows that are null: those whose place is `end` or beyond. `rows` (null: all of them): which of
/// the places are the rows'.
struct DenseKey {
  const uint32_t* places;
  const uint32_t* rows;
  const uint32_t* numbers;
  uint32_t end;
  uint32_t size;
};

inline constexpr uint32_t kMostDenseKeys = 4;

struct DenseKeys {
  DenseKey key[kMostDenseKeys];
  uint64_t count;
};

/// Each row's combination, and for each combination the complement of its first row: zero, as all are at
/// first, where no row has it.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_combine(DenseKeys keys, uint32_t rows, uint32_t* combinations, uint32_t* firsts) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < keys.count; ++i) {
      const DenseKey& key = keys.key[i];
      const uint32_t place = key.places[key.rows == nullptr ? row : key.rows[row]];
      const uint32_t number = place >= key.end         ? key.size
                              : key.numbers == nullptr ? place
                                                       : key.numbers[place];
      found = found * (key.size + 1) + number;
    }
    combinations[row] = found;
    // Rows come in ascending order: after the first ones hardly any is the first of its group.
    if (firsts[found] < ~row) atomicMax(firsts + found, ~row);
  }
}

/// Combinations become the numbers of their groups.
extern "C" __global__ void __launch_bounds__(kThreads)
    keys_number_combinations(uint32_t rows, const uint32_t* numbers, uint32_t* codes) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < rows; row += step) {
    codes[row] = numbers[codes[row]];
  }
}

}  // namespace bamquery
