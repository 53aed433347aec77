// What the core asks of the side it runs on: a GPU (NVRTC), a CPU (g++), or the interleaving explorer.
#pragma once

#if defined(__CUDACC__)

#include <cuda/std/cstddef>
#include <cuda/std/cstdint>

#define BAMQUERY_CORE __device__ inline
// Off the fast path: a call of its own, so that it costs the fast path no registers.
#define BAMQUERY_CORE_SLOW __device__ __noinline__
#define BAMQUERY_UNROLL _Pragma("unroll")

#else

#include <cstddef>
#include <cstdint>

#if !defined(BAMQUERY_EXPLORE)
#include <chrono>
#include <thread>
#endif

#define BAMQUERY_CORE inline
#define BAMQUERY_CORE_SLOW inline
#define BAMQUERY_UNROLL

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
/// The explorer decides who goes on; tests/native/explore/explore.hpp has it.
namespace explore {
void access(const void* address, bool writes);
void fence();
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
void sync();
uint32_t ballot(bool yes);
uint64_t broadcast(uint64_t value, uint32_t from);
uint32_t match(uint64_t value);
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

#if !defined(__CUDACC__) && !defined(BAMQUERY_EXPLORE)
inline constexpr uint32_t kSpinningLooks = 64;
inline constexpr uint32_t kYieldingLooks = 1024;  ///< About a millisecond.
#endif

/// Lets others run before the next look at a word that somebody else must change. `tries` counts the looks
/// so far in this wait.
BAMQUERY_CORE void pause([[maybe_unused]] uint32_t tries) {
#if defined(__CUDACC__)
  // Longer naps cost latency, none at all starve the warps that do work. Who has waited as long as any
  // command takes waits for others in a crowd: the fewer look, the sooner those get on.
  if (tries > 8) __nanosleep(tries < 64 ? 32 : tries < 512 ? 256 : tries < 4096 ? 1024 : 4096);
#elif defined(BAMQUERY_EXPLORE)
  explore::pause();
#else
  if (tries < kSpinningLooks) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  } else if (tries < kYieldingLooks) {
    std::this_thread::yield();
  } else {
    // Where others want the processor, who yields again and again is not let on for seconds: Linux takes each
    // yield for a slice that was used up.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
#endif
}

/// A wait for a word that somebody else must change. The explorer counts no looks: each look must find the
/// wait as it was, or waiting would have no end of states.
class Backoff {
 public:
  BAMQUERY_CORE uint32_t looks() const { return looks_; }
  BAMQUERY_CORE void pause() {
#if defined(__CUDACC__) || defined(BAMQUERY_EXPLORE)
    bamquery::pause(looks_);
#else
    const bool yields = looks_ >= kSpinningLooks && looks_ < kYieldingLooks;
    const uint64_t before = yields ? now_ns() : 0;
    bamquery::pause(looks_);
    // A microsecond or so of others' time counts as a look, too.
    if (yields) looks_ += static_cast<uint32_t>((now_ns() - before) >> 10);
#endif
#if !defined(BAMQUERY_EXPLORE)
    ++looks_;
#endif
  }

 private:
  uint32_t looks_ = 0;
};

/// 16 bytes, at addresses that are multiples of 16: one access on a GPU.
#if defined(__CUDACC__)
using Vector = uint4;
#else
struct Vector {
  uint64_t words[2];
};
#endif

BAMQUERY_CORE Vector load_vector(const byte* from) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const Vector*>(from);
#else
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
#endif
}

BAMQUERY_CORE void store_vector(byte* to, const Vector& vector) {
#if defined(__CUDACC__)
  *reinterpret_cast<Vector*>(to) = vector;
#else
  __builtin_memcpy(to, &vector, sizeof vector);
#endif
}

BAMQUERY_CORE void copy_vector(byte* to, const byte* from) { store_vector(to, load_vector(from)); }

/// When a wait gives up.
struct Deadline {
  uint64_t at_ns;

  BAMQUERY_CORE static Deadline in(uint64_t ns) { return {now_ns() + ns}; }
  BAMQUERY_CORE bool passed() const { return now_ns() >= at_ns; }
};

/// Number of the lowest bit that is set; there must be one.
BAMQUERY_CORE uint32_t lowest_bit(uint32_t word) {
#if defined(__CUDACC__)
  return static_cast<uint32_t>(__ffs(static_cast<int>(word)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctz(word));
#endif
}

/// Number of the highest bit that is set; there must be one.
BAMQUERY_CORE uint32_t highest_bit(uint32_t word) {
#if defined(__CUDACC__)
  return static_cast<uint32_t>(31 - __clz(static_cast<int>(word)));
#else
  return static_cast<uint32_t>(31 - __builtin_clz(word));
#endif
}

/// How many bits are set.
BAMQUERY_CORE uint32_t bit_count(uint32_t word) {
#if defined(__CUDACC__)
  return static_cast<uint32_t>(__popc(static_cast<int>(word)));
#else
  return static_cast<uint32_t>(__builtin_popcount(word));
#endif
}

/// All lanes of a warp, acting together: all of them must make each call. On a CPU a thread is a warp of one.
///
/// A group is either that or `Lone`, and nothing between them, on purpose. Lanes that merely happen to be
/// here
/// (__activemask, and with it cooperative groups' coalesced_threads) may be joined by others before they
/// exchange anything, since lanes converge again behind any branch; the machine code then takes one lane's
/// mask for everybody's, a lane goes on without its partners, and those wait for ever. Seen on an H200 with
/// NVRTC 13.0: the slot clock's hand was moved by the lanes that were there.
struct Lanes {
  static constexpr bool kTogether = true;
  static constexpr bool kRingsDoorbell = true;

  BAMQUERY_CORE static constexpr Lanes warp() { return {}; }

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

  BAMQUERY_CORE static constexpr uint32_t count() {
#if defined(__CUDACC__) || defined(BAMQUERY_WARPS)
    return 32;
#else
    return 1;
#endif
  }

  /// This lane's number in the group, and the bit that stands for it in a ballot.
  BAMQUERY_CORE static uint32_t rank() { return lane(); }

  /// Whether this is lane 0.
  BAMQUERY_CORE static bool leads() { return rank() == 0; }

  /// Bit i: the lane of rank i says yes.
  BAMQUERY_CORE static uint32_t ballot(bool yes) {
#if defined(__CUDACC__)
    return __ballot_sync(0xffffffffu, yes);
#elif defined(BAMQUERY_WARPS)
    return warps::ballot(yes);
#else
    return yes ? 1 : 0;
#endif
  }

  BAMQUERY_CORE static bool any(bool yes) { return ballot(yes) != 0; }
  BAMQUERY_CORE static bool all(bool yes) { return ballot(!yes) == 0; }

  /// How many lanes say yes before the first that does not.
  BAMQUERY_CORE static uint32_t run(bool yes) {
    const uint32_t no = ballot(!yes);
    return no == 0 ? count() : lowest_bit(no);
  }

  /// The value that the lane of rank `from` has.
  template <typename T>
  BAMQUERY_CORE static T broadcast(T value, [[maybe_unused]] uint32_t from = 0) {
#if defined(__CUDACC__)
    return __shfl_sync(0xffffffffu, value, static_cast<int>(from));
#elif defined(BAMQUERY_WARPS)
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = warps::broadcast(bits, from);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
#else
    return value;
#endif
  }

  /// As a ballot: the lanes whose value is this lane's.
  template <typename T>
  BAMQUERY_CORE static uint32_t match([[maybe_unused]] T value) {
#if defined(__CUDACC__)
    return __match_any_sync(0xffffffffu, value);
#elif defined(BAMQUERY_WARPS)
    return warps::match(value);
#else
    return 1;
#endif
  }

  /// Waits for all lanes, and orders their memory accesses among each other.
  BAMQUERY_CORE static void sync() {
#if defined(__CUDACC__)
    __syncwarp();
#elif defined(BAMQUERY_WARPS)
    warps::sync();
#endif
  }
};

/// One lane for itself, whatever the others of its warp do: a group like `Lanes`, of one.
struct Lone {
  static constexpr bool kTogether = false;
  static constexpr bool kRingsDoorbell = true;

  BAMQUERY_CORE static constexpr uint32_t count() { return 1; }
  BAMQUERY_CORE static constexpr uint32_t rank() { return 0; }
  BAMQUERY_CORE static constexpr bool leads() { return true; }
  BAMQUERY_CORE static constexpr uint32_t ballot(bool yes) { return yes ? 1 : 0; }
  BAMQUERY_CORE static constexpr bool any(bool yes) { return yes; }
  BAMQUERY_CORE static constexpr bool all(bool yes) { return yes; }
  BAMQUERY_CORE static constexpr uint32_t run(bool yes) { return yes ? 1 : 0; }
  template <typename T>
  BAMQUERY_CORE static constexpr T broadcast(T value, uint32_t = 0) {
    return value;
  }
  template <typename T>
  BAMQUERY_CORE static constexpr uint32_t match(T) {
    return 1;
  }
  BAMQUERY_CORE static constexpr void sync() {}
};

/// `Lone`, for a thread that issues several commands before it rings one doorbell:
/// QueuePair::ring_doorbell().
struct Silent : Lone {
  static constexpr bool kRingsDoorbell = false;
};

/// Of the lanes of a ballot, how many come before that of rank `rank`.
BAMQUERY_CORE uint32_t count_before(uint32_t ballot, uint32_t rank) {
  return bit_count(ballot & ((1u << rank) - 1));
}

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
