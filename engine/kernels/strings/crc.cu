// Compares the offsets, the bytes or the payloads of vectors of strings with their checksums: one warp a
// vector.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_vector_crc.hpp"
#include "engine/kernels/strings/scan_strings.hpp"

namespace bamquery {

/// Vectors v with used[v] (null: all), of `vector_rows` rows. With `ranges` and `shifts` the bytes of their
/// strings: byte b of vector v's is at address shifts[v] + b; without, their offsets. `bad` (zero before)
/// gets how many vectors there are from the first on whose checksum differs. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_crc(const ScanStrings strings, const ScanRange* ranges, const uint64_t* shifts,
                    const uint16_t* vector_rows, const uint32_t* used, const uint32_t* checksums,
                    uint32_t* bad) {
  __shared__ CrcTables tables;
  make_crc_tables(tables);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < strings.vector_count;
       vector += step) {
    if (used != nullptr && used[vector] == 0) continue;
    const byte* from = nullptr;
    uint64_t bytes = 0;
    if (ranges != nullptr) {
      from = reinterpret_cast<const byte*>(shifts[vector] + ranges[vector].begin);
      bytes = ranges[vector].end - ranges[vector].begin;
    } else {
      from = reinterpret_cast<const byte*>(strings.vector_offsets(vector));
      bytes = (vector_rows[vector] + uint64_t{1}) * sizeof(uint64_t);
    }
    const uint32_t crc = vector_crc(tables, from, bytes);
    if (Lanes::leads() && crc != checksums[vector]) atomicMax(bad, strings.vector_count - vector);
  }
}

}  // namespace bamquery
