// As much of CUDA as the scan's kernels use, on a CPU: threads are fibers that run in turn, warp by warp, and
// meet where the kernel says so. That a lane of a warp never comes is found out.
#pragma once

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/core/platform.hpp"
#include "tests/native/explore/fiber.hpp"

struct uint4 {
  std::uint32_t x, y, z, w;
};
inline uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) {
  return {x, y, z, w};
}

struct Dimensions {
  std::uint32_t x = 1, y = 1, z = 1;
};
inline Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

enum class Waits { kNot, kWarp, kBlock };

struct Lane {
  std::unique_ptr<bamquery::Fiber> fiber;
  std::uint32_t thread = 0;
  Waits waits = Waits::kNot;
  bool ended = true;
  std::uint64_t value = 0;
};

inline std::vector<Lane> lanes;
inline Lane* running = nullptr;
inline std::function<void()> body;
alignas(16) inline std::byte shared_memory[1 << 17];
inline std::uint64_t met[32];  // What the lanes of a warp brought to where they met, each warp's in its turn.

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s\n", what);
  std::abort();
}

inline void resume(Lane& lane) {
  running = &lane;
  threadIdx.x = lane.thread;
  lane.fiber->resume();
  running = nullptr;
}

inline void make_lanes(std::uint32_t threads) {
  while (lanes.size() < threads) lanes.emplace_back();
  for (std::uint32_t i = 0; i < threads; ++i) {
    Lane& lane = lanes[i];
    lane.thread = i;
    if (lane.fiber) continue;
    lane.fiber = std::make_unique<bamquery::Fiber>([] {
      while (true) {
        body();
        running->ended = true;
        bamquery::Fiber::yield();
      }
    });
    lane.fiber->start();
  }
}

inline std::uint64_t values_of[64][32];

/// Lets a warp that has met go on; false if some of its lanes have not come.
inline bool leave_warp(std::uint32_t warp, std::uint32_t threads) {
  bool any = false;
  for (std::uint32_t i = 32 * warp; i < std::min(threads, 32 * warp + 32); ++i) {
    if (lanes[i].ended) {
      if (any) fail("a lane has ended where its warp meets");
      continue;
    }
    if (lanes[i].waits != Waits::kWarp) return false;
    any = true;
  }
  if (!any) return false;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if (lanes[32 * warp + i].ended) fail("a lane has ended where its warp meets");
    values_of[warp][i] = lanes[32 * warp + i].value;
    lanes[32 * warp + i].waits = Waits::kNot;
  }
  return true;
}

inline void run_block(std::uint32_t threads) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    lanes[i].ended = false;
    lanes[i].waits = Waits::kNot;
  }
  for (std::uint32_t left = threads; left != 0;) {
    bool moved = false;
    for (std::uint32_t i = 0; i < threads; ++i) {
      Lane& lane = lanes[i];
      if (lane.ended || lane.waits != Waits::kNot) continue;
      resume(lane);
      moved = true;
      if (lane.ended) --left;
    }
    for (std::uint32_t warp = 0; 32 * warp < threads; ++warp) moved |= leave_warp(warp, threads);
    if (moved) continue;
    for (std::uint32_t i = 0; i < threads; ++i) {
      if (!lanes[i].ended && lanes[i].waits != Waits::kBlock) fail("lanes wait for others that never come");
    }
    for (std::uint32_t i = 0; i < threads; ++i) lanes[i].waits = Waits::kNot;
  }
}

inline void meet(Waits waits) {
  running->waits = waits;
  bamquery::Fiber::yield();
}

/// What all lanes of this lane's warp bring.
inline const std::uint64_t* exchange(std::uint64_t value) {
  running->value = value;
  meet(Waits::kWarp);
  return values_of[running->thread / 32];
}

inline void let_others_run() { bamquery::Fiber::yield(); }

template <typename... Parameters, std::size_t... kAt>
void launch(void (*kernel)(Parameters...), void** arguments, std::index_sequence<kAt...>) {
  kernel(*static_cast<std::remove_cv_t<Parameters>*>(arguments[kAt])...);
}

template <typename... Parameters>
void run(void (*kernel)(Parameters...), void** arguments, std::uint32_t grid, std::uint32_t block) {
  make_lanes(block);
  gridDim.x = grid;
  blockDim.x = block;
  body = [kernel, arguments] { launch(kernel, arguments, std::index_sequence_for<Parameters...>{}); };
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) run_block(block);
}

template <typename... Parameters>
constexpr std::uint32_t count_of(void (*)(Parameters...)) {
  return sizeof...(Parameters);
}
template <typename... Parameters>
std::uint32_t size_of(void (*)(Parameters...), std::uint32_t at) {
  const std::size_t sizes[] = {sizeof(Parameters)...};
  return static_cast<std::uint32_t>(sizes[at]);
}

inline std::uint32_t to_word(bool yes) { return yes ? 1 : 0; }

}  // namespace emulated

// Values read before anybody goes on: a lane that has met copies at once, and runs alone until it meets
// again.
template <typename T>
T __shfl_sync(unsigned, T value, std::uint32_t from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulated::exchange(bits)[from % 32];
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, std::uint32_t distance) {
  return __shfl_sync(mask, value, emulated::running->thread % 32 ^ distance);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, std::uint32_t distance) {
  const std::uint32_t lane = emulated::running->thread % 32;
  return __shfl_sync(mask, value, lane >= distance ? lane - distance : lane);
}
inline std::uint32_t __ballot_sync(unsigned, bool yes) {
  const std::uint64_t* const all = emulated::exchange(emulated::to_word(yes));
  std::uint32_t ballot = 0;
  for (std::uint32_t i = 0; i < 32; ++i) ballot |= static_cast<std::uint32_t>(all[i]) << i;
  return ballot;
}
inline bool __any_sync(unsigned mask, bool yes) { return __ballot_sync(mask, yes) != 0; }
inline std::uint32_t __reduce_add_sync(unsigned, std::uint32_t value) {
  const std::uint64_t* const all = emulated::exchange(value);
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < 32; ++i) sum += static_cast<std::uint32_t>(all[i]);
  return sum;
}
inline void __syncwarp() { emulated::exchange(0); }
inline void __syncthreads() { emulated::meet(emulated::Waits::kBlock); }
inline int __syncthreads_count(bool yes) {
  static std::uint32_t count = 0;
  if (emulated::running->thread == 0) count = 0;
  __syncthreads();
  count += emulated::to_word(yes);
  __syncthreads();
  const std::uint32_t found = count;
  __syncthreads();
  return static_cast<int>(found);
}
inline int __popc(std::uint32_t word) { return __builtin_popcount(word); }
inline void __nanosleep(std::uint32_t) { emulated::let_others_run(); }
template <typename T, typename U>
T atomicAdd(T* word, U more) {
  const T before = *word;
  *word += static_cast<T>(more);
  return before;
}

template <typename T>
T atomicMax(T* word, T value) {
  return std::exchange(*word, std::max(*word, value));
}
template <typename T>
T atomicMin(T* word, T value) {
  return std::exchange(*word, std::min(*word, value));
}
template <typename T>
T atomicOr(T* word, T bits) {
  return std::exchange(*word, *word | bits);
}
template <typename T>
T atomicCAS(T* word, T expected, T value) {
  const T before = *word;
  if (before == expected) *word = value;
  return before;
}

inline double __longlong_as_double(long long bits) {
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
inline long long __double_as_longlong(double number) {
  long long bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __ll2double_rn(long long word) { return static_cast<double>(word); }
inline double __ull2double_rn(unsigned long long word) { return static_cast<double>(word); }

namespace bamquery::warps {
inline std::uint32_t lane() { return emulated::running->thread % 32; }
inline std::uint32_t thread() { return emulated::running->thread; }
inline std::uint32_t threads() { return blockDim.x; }
inline void sync() { __syncwarp(); }
inline std::uint32_t ballot(bool yes) { return __ballot_sync(~0u, yes); }
inline std::uint64_t broadcast(std::uint64_t value, std::uint32_t from) {
  return __shfl_sync(~0u, value, from);
}
inline std::uint32_t match(std::uint64_t value) {
  const std::uint64_t* const all = emulated::exchange(value);
  std::uint32_t same = 0;
  for (std::uint32_t i = 0; i < 32; ++i) same |= emulated::to_word(all[i] == value) << i;
  return same;
}
inline void sync_block() { __syncthreads(); }
}  // namespace bamquery::warps

namespace bamquery::explore {
inline void access(const void*, bool) {}
inline void pause() { emulated::let_others_run(); }
inline void fence() {}
inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
}  // namespace bamquery::explore

using std::min;

#define EMULATE(kernel)                                                                      \
  extern "C" void run_##kernel(void** arguments, std::uint32_t grid, std::uint32_t block) {  \
    emulated::run(bamquery::kernel, arguments, grid, block);                                 \
  }                                                                                          \
  extern "C" std::uint32_t count_##kernel() { return emulated::count_of(bamquery::kernel); } \
  extern "C" std::uint32_t size_##kernel(std::uint32_t at) { return emulated::size_of(bamquery::kernel, at); }
