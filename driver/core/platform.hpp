// What the core asks of the side it runs on: a GPU (NVRTC), a CPU (g++), or the interleaving explorer.
#pragma once

#if defined(__CUDACC__)

#include <cuda/std/cstddef>
#include <cuda/std/cstdint>

#define BAMQUERY_CORE __device__ inline
// Off the fast path: a call of its own, so that it costs the fast path no registers.
#define BAMQUERY_CORE_SLOW __device__ __noinline__

#else

#include <cstddef>
#include <cstdint>

#if !defined(BAMQUERY_EXPLORE)
#include <chrono>
#include <thread>
#endif

#define BAMQUERY_CORE inline
#define BAMQUERY_CORE_SLOW inline

#endif

namespace bamquery {

#if defined(__CUDACC__)
using cuda::std::byte;
using cuda::std::int32_t;
using cuda::std::int64_t;
using cuda::std::size_t;
using cuda::std::uint16_t;
using cuda::std::uint32_t;
using cuda::std::uint64_t;
using cuda::std::uint8_t;
#else
using std::byte;
using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
#endif

#if defined(BAMQUERY_EXPLORE)
/// The explorer decides who goes on; tests/native/explore.hpp has it.
namespace explore {
void access(const void* address, bool writes);
void pause();
uint64_t now_ns();
}  // namespace explore
#endif

#if defined(BAMQUERY_WARPS)
/// Warps of many lanes on a CPU; tests/native/warps.hpp has them.
namespace warps {
uint32_t lane();
uint32_t thread();
uint32_t threads();
uint32_t active();
void sync(uint32_t mask);
uint32_t ballot(uint32_t mask, bool yes);
uint64_t broadcast(uint32_t mask, uint64_t value, uint32_t from);
uint32_t match(uint32_t mask, uint64_t value);
void sync_block();
}  // namespace warps
#endif

/// Nanoseconds of a clock that only goes forward; its zero means nothing.
BAMQUERY_CORE uint64_t now_ns() {
#if defined(__CUDACC__)
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#elif defined(BAMQUERY_EXPLORE)
  return explore::now_ns();
#else
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
#endif
}

/// Lets others run before the next look at a word that somebody else must change. `tries` counts the looks
/// so far in this wait.
BAMQUERY_CORE void pause([[maybe_unused]] uint32_t tries) {
#if defined(__CUDACC__)
  // Longer naps cost latency, none at all starve the warps that do work.
  if (tries > 8) __nanosleep(tries < 64 ? 32 : 256);
#elif defined(BAMQUERY_EXPLORE)
  explore::pause();
#else
  if (tries < 64) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  } else {
    std::this_thread::yield();
  }
#endif
}

/// A wait for a word that somebody else must change. The explorer counts no looks: each look must find the
/// wait as it was, or waiting would have no end of states.
class Backoff {
 public:
  BAMQUERY_CORE uint32_t looks() const { return looks_; }
  BAMQUERY_CORE void pause() {
    bamquery::pause(looks_);
#if !defined(BAMQUERY_EXPLORE)
    ++looks_;
#endif
  }

 private:
  uint32_t looks_ = 0;
};

/// Moves 16 bytes between addresses that are multiples of 16, in one access on a GPU.
BAMQUERY_CORE void copy_vector(byte* to, const byte* from) {
#if defined(__CUDACC__)
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
#else
  __builtin_memcpy(to, from, 16);
#endif
}

/// When a wait gives up.
struct Deadline {
  uint64_t at_ns;

  BAMQUERY_CORE static Deadline in(uint64_t ns) { return {now_ns() + ns}; }
  BAMQUERY_CORE bool passed() const { return now_ns() >= at_ns; }
};

/// Lanes of a warp that act together. On a CPU a thread is a warp of one lane.
///
/// All lanes of `mask` must make each call, and no others.
struct Lanes {
  uint32_t mask;

  /// The lanes that are here now, in divergent code too. Which lanes that is may differ at the next call.
  BAMQUERY_CORE static Lanes active() {
#if defined(__CUDACC__)
    return {__activemask()};
#elif defined(BAMQUERY_WARPS)
    return {warps::active()};
#else
    return {1};
#endif
  }

  /// All lanes of the warp; only where no lane has left.
  BAMQUERY_CORE static Lanes warp() {
#if defined(__CUDACC__)
    return {0xffffffffu};
#elif defined(BAMQUERY_WARPS)
    return {0xffffffffu};
#else
    return {1};
#endif
  }

  /// This lane's number in its warp.
  BAMQUERY_CORE static uint32_t lane() {
#if defined(__CUDACC__)
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
#elif defined(BAMQUERY_WARPS)
    return warps::lane();
#else
    return 0;
#endif
  }

  BAMQUERY_CORE uint32_t count() const {
#if defined(__CUDACC__)
    return static_cast<uint32_t>(__popc(static_cast<int>(mask)));
#else
    return static_cast<uint32_t>(__builtin_popcount(mask));
#endif
  }

  /// How many lanes of the group come before this one.
  BAMQUERY_CORE uint32_t rank() const {
#if defined(__CUDACC__)
    return static_cast<uint32_t>(__popc(static_cast<int>(mask & ((1u << lane()) - 1))));
#else
    return static_cast<uint32_t>(__builtin_popcount(mask & ((1u << lane()) - 1)));
#endif
  }

  /// Lane number of the group's first lane.
  BAMQUERY_CORE uint32_t leader() const {
#if defined(__CUDACC__)
    return static_cast<uint32_t>(__ffs(static_cast<int>(mask)) - 1);
#else
    return static_cast<uint32_t>(__builtin_ctz(mask));
#endif
  }

  BAMQUERY_CORE bool leads() const { return lane() == leader(); }

  /// Bit i: lane i of the warp is in the group and says yes.
  BAMQUERY_CORE uint32_t ballot(bool yes) const {
#if defined(__CUDACC__)
    return __ballot_sync(mask, yes);
#elif defined(BAMQUERY_WARPS)
    return warps::ballot(mask, yes);
#else
    return yes ? 1 : 0;
#endif
  }

  BAMQUERY_CORE bool any(bool yes) const { return ballot(yes) != 0; }
  BAMQUERY_CORE bool all(bool yes) const { return ballot(!yes) == 0; }

  /// How many lanes say yes before the first that does not.
  BAMQUERY_CORE uint32_t run(bool yes) const {
    const uint32_t no = ballot(!yes);
    return Lanes{mask & ((no & (0u - no)) - 1)}.count();
  }

  /// The value that lane number `from` has.
  template <typename T>
  BAMQUERY_CORE T broadcast(T value, [[maybe_unused]] uint32_t from) const {
#if defined(__CUDACC__)
    return __shfl_sync(mask, value, static_cast<int>(from));
#elif defined(BAMQUERY_WARPS)
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = warps::broadcast(mask, bits, from);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
#else
    return value;
#endif
  }

  /// Lanes of the group whose value is this lane's.
  template <typename T>
  BAMQUERY_CORE Lanes match([[maybe_unused]] T value) const {
#if defined(__CUDACC__)
    return {__match_any_sync(mask, value)};
#elif defined(BAMQUERY_WARPS)
    return {warps::match(mask, value)};
#else
    return {1};
#endif
  }

  /// Waits for all lanes of the group, and orders their memory accesses among each other.
  BAMQUERY_CORE void sync() const {
#if defined(__CUDACC__)
    __syncwarp(mask);
#elif defined(BAMQUERY_WARPS)
    warps::sync(mask);
#endif
  }
};

/// The threads that hold a leased queue pair together: a thread block, or one CPU thread.
struct BlockThreads {
  BAMQUERY_CORE static uint32_t count() {
#if defined(__CUDACC__)
    return blockDim.x * blockDim.y * blockDim.z;
#elif defined(BAMQUERY_WARPS)
    return warps::threads();
#else
    return 1;
#endif
  }

  /// This thread's number in its block; 32 numbers in a row are a warp's.
  BAMQUERY_CORE static uint32_t rank() {
#if defined(__CUDACC__)
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
#elif defined(BAMQUERY_WARPS)
    return warps::thread();
#else
    return 0;
#endif
  }

  /// Waits for all threads of the block, and orders their memory accesses among each other.
  BAMQUERY_CORE static void sync() {
#if defined(__CUDACC__)
    __syncthreads();
#elif defined(BAMQUERY_WARPS)
    warps::sync_block();
#endif
  }
};

}  // namespace bamquery
