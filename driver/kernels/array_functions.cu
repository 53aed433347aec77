// What `array[i]` calls in a kernel that numba compiles (driver/numba_array.py declares them).
//
// Any launch shape, any subset of a warp's lanes. A negative index counts from the end. A read that fails
// gives 0, and each failure goes to the array's error record.
#include "driver/core/array/shared_array.hpp"

using namespace bamquery;

namespace {

__device__ inline SharedPairs pairs_of_thread(const SharedArrayView& view) {
  const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  // Warps next to each other take different pairs.
  const uint32_t hint = block * ((BlockThreads::count() + 31) / 32) + BlockThreads::rank() / 32;
  return {view.pools, view.drives, hint};
}

__device__ inline uint64_t place(const SharedArrayView& view, long long index) {
  return static_cast<uint64_t>(index) + (index < 0 ? view.array.count : 0);
}

template <typename T>
__device__ inline T read(uint64_t address, long long index) {
  const auto& view = *reinterpret_cast<const SharedArrayView*>(address);
  const auto queue = pairs_of_thread(view);
  T value;
  (void)Array<T, const SharedPairs>(view.array, queue).read(place(view, index), value);
  return value;
}

template <typename T>
__device__ inline Status write(uint64_t address, long long index, T value) {
  const auto& view = *reinterpret_cast<const SharedArrayView*>(address);
  const auto queue = pairs_of_thread(view);
  return Array<T, const SharedPairs>(view.array, queue).write(place(view, index), value);
}

}  // namespace

// One for each size; numba turns bits into the type asked for. All of them take and return 64 bits: compilers
// do not agree on who widens smaller arguments.
#define BAMQUERY_ARRAY_FUNCTIONS(size, type)                                                    \
  extern "C" __device__ unsigned long long bamquery_array_read_##size(unsigned long long array, \
                                                                      long long index) {        \
    return read<type>(array, index);                                                            \
  }                                                                                             \
  extern "C" __device__ unsigned long long bamquery_array_write_##size(                         \
      unsigned long long array, long long index, unsigned long long bits) {                     \
    return write<type>(array, index, static_cast<type>(bits)).code;                             \
  }
BAMQUERY_ARRAY_FUNCTIONS(1, uint8_t)
BAMQUERY_ARRAY_FUNCTIONS(2, uint16_t)
BAMQUERY_ARRAY_FUNCTIONS(4, uint32_t)
BAMQUERY_ARRAY_FUNCTIONS(8, uint64_t)

extern "C" __device__ long long bamquery_array_size(unsigned long long array) {
  return static_cast<long long>(reinterpret_cast<const SharedArrayView*>(array)->array.count);
}
