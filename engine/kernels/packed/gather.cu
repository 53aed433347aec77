// Values of a packed column: of rows at positions, or of all.
#include "engine/kernels/packed/scan_packed.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

namespace {

using Value = BAMQUERY_SCAN_TYPE;

}  // namespace

/// The values at `count` positions of a selection; of nulls zero. `valid` (null: nobody asks) gets a byte
/// each: whether it is a value.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_gather(const ScanPacked packed, const uint32_t* positions, uint32_t count, Value* to,
                       uint8_t* valid) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += step) {
    const uint32_t position = positions[i];
    const PackedReader<Value> reader(packed, position / kVectorRows);
    Value value;
    const bool found = reader.read(position % kVectorRows, value);
    to[i] = value;
    if (valid != nullptr) valid[i] = found ? 1 : 0;
  }
}

/// All values of `vectors` vectors, row r of vector v at position 1024 v + r; of nulls zero. `validity`
/// (null: nobody asks) gets a bit each, `null_count` (zero before) the nulls. 256 threads, a warp a vector.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_unpack(const ScanPacked packed, uint32_t vectors, Value* to, uint32_t* validity,
                       uint32_t* null_count) {
  const uint32_t lane = Lanes::lane();
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    const PackedReader<Value> reader(packed, vector);
    const uint32_t rows = reader.rows();
    Value* const target = to + static_cast<uint64_t>(vector) * kVectorRows;
    uint32_t mine = 0;
#pragma unroll 4
    for (uint32_t word = 0; word < kVectorWords; ++word) {
      const uint32_t row = 32 * word + lane;
      bool found = false;
      if (row < rows) {
        Value value;
        found = reader.read(row, value);
        target[row] = value;
      }
      const uint32_t bits = __ballot_sync(~0u, found);
      if (lane == word) mine = bits;
    }
    if (validity == nullptr) continue;
    validity[static_cast<uint64_t>(vector) * kVectorWords + lane] = mine;
    const uint32_t valid = __reduce_add_sync(~0u, __popc(mine));
    if (lane == 0 && valid != rows) atomicAdd(null_count, rows - valid);
  }
}

}  // namespace bamquery
