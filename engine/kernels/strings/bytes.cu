// The bytes of a selection's strings, end to end, out of vectors or blocks that lie in this GPU's memory.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/strings/scan_strings.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kBytes = 16;  // of a thread
constexpr uint32_t kSegment = kThreads * kBytes;

}  // namespace

/// `sums` are of the rows' lengths. With `bases` (sums of the blocks that begin with each row) `memory` has
/// the blocks that hold the strings, one after the other; without, byte b of vector v's strings is at address
/// shifts[v] + b. Writes whole 16 bytes. 256 threads, which take 4,096 bytes at a time.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_string_bytes(const ScanStrings strings, const uint64_t* sums, const uint64_t* bases,
                      const byte* memory, const uint64_t* shifts, byte* to) {
  __shared__ uint32_t edge[2];
  const auto source = [&](uint32_t row) {
    const ScanRange range = strings.range(row);
    if (bases == nullptr) return reinterpret_cast<const byte*>(shifts[strings.vector(row)] + range.begin);
    return strings.in_blocks(row, range, bases, memory);
  };
  const uint64_t total = sums[strings.rows];
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * kSegment;
  for (uint64_t segment = static_cast<uint64_t>(blockIdx.x) * kSegment; segment < total; segment += stride) {
    if (threadIdx.x < 2) {
      const uint64_t at = threadIdx.x == 0 ? segment : min(segment + kSegment, total) - 1;
      edge[threadIdx.x] = last_at_most(sums, strings.rows, at);
    }
    __syncthreads();
    const uint32_t first = edge[0];
    const uint32_t end = edge[1] + 1;
    const uint64_t begin = segment + threadIdx.x * kBytes;
    if (begin < total) {
      uint32_t row = first + last_at_most(sums + first, end - first, begin);
      uint64_t row_end = sums[row + 1];
      const byte* from = source(row) + (begin - sums[row]);
      uint64_t words[2] = {0, 0};
#pragma unroll
      for (uint32_t i = 0; i < kBytes; ++i) {
        if (begin + i >= total) break;
        if (begin + i == row_end) {
          ++row;
          if (sums[row + 1] == row_end) {  // Of rows without a byte there may be any number.
            row = row + last_at_most(sums + row, end - row, row_end);
          }
          row_end = sums[row + 1];
          from = source(row);
        }
        words[i / 8] |= static_cast<uint64_t>(*from) << (i % 8 * 8);
        ++from;
      }
      auto* const target = reinterpret_cast<uint64_t*>(to + begin);
      target[0] = words[0];
      target[1] = words[1];
    }
    __syncthreads();  // All have read the edges that are written next.
  }
}

}  // namespace bamquery
