// Words that several threads change, or that a thread shares with a controller.
#pragma once

#include "driver/core/platform.hpp"

#if defined(__CUDACC__)
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace bamquery {

/// Who shares a word. A word has one scope for all its accesses; on a CPU they are all the same.
enum class Scope {
  kBlock,   ///< Threads of one block: the flags of a leased queue pair, in shared memory.
  kDevice,  ///< Threads of one GPU: the flags of a shared queue pair, cache slots.
  kSystem,  ///< The GPU and a controller. One side writes; loads and stores only, since a GPU has no native
            ///< atomics on host memory.
};

#if defined(__CUDACC__)
using MemoryOrder = cuda::std::memory_order;
inline constexpr MemoryOrder kRelaxed = cuda::std::memory_order_relaxed;
inline constexpr MemoryOrder kAcquire = cuda::std::memory_order_acquire;
inline constexpr MemoryOrder kRelease = cuda::std::memory_order_release;
inline constexpr MemoryOrder kAcquireRelease = cuda::std::memory_order_acq_rel;
#else
using MemoryOrder = std::memory_order;
inline constexpr MemoryOrder kRelaxed = std::memory_order_relaxed;
inline constexpr MemoryOrder kAcquire = std::memory_order_acquire;
inline constexpr MemoryOrder kRelease = std::memory_order_release;
inline constexpr MemoryOrder kAcquireRelease = std::memory_order_acq_rel;
#endif

/// `cuda::atomic_ref` on a GPU, `std::atomic_ref` on a CPU, and there each access is a step of the explorer
/// where BAMQUERY_EXPLORE is set. Ordering is always on the word itself: no fences, which ThreadSanitizer
/// cannot see.
///
/// With BAMQUERY_RACECHECK, loads and stores in a block's shared memory are read-modify-writes: by these
/// alone does compute-sanitizer's racecheck tell atomics from races.
template <typename T, Scope kScope>
class AtomicRef {
 public:
  BAMQUERY_CORE explicit AtomicRef(T& word) : word_(&word) {}

  BAMQUERY_CORE T load(MemoryOrder order) const {
    step(false);
#if defined(BAMQUERY_RACECHECK)
    if constexpr (kScope == Scope::kBlock) return ref().fetch_or(0, order);
#endif
    return ref().load(order);
  }
  BAMQUERY_CORE void store(T value, MemoryOrder order) const {
    step(true);
#if defined(BAMQUERY_RACECHECK)
    if constexpr (kScope == Scope::kBlock) {
      ref().exchange(value, order);
      return;
    }
#endif
    ref().store(value, order);
  }
  BAMQUERY_CORE T exchange(T value, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().exchange(value, order);
  }
  /// On failure `expected` becomes the word's value, read with acquire.
  BAMQUERY_CORE bool compare_exchange(T& expected, T desired, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().compare_exchange_strong(expected, desired, order, kAcquire);
  }
  BAMQUERY_CORE T fetch_add(T value, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().fetch_add(value, order);
  }
  BAMQUERY_CORE T fetch_sub(T value, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().fetch_sub(value, order);
  }
  BAMQUERY_CORE T fetch_or(T value, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().fetch_or(value, order);
  }
  BAMQUERY_CORE T fetch_and(T value, MemoryOrder order) const {
    static_assert(kScope != Scope::kSystem, "no native atomics on host memory");
    step(true);
    return ref().fetch_and(value, order);
  }

 private:
#if defined(__CUDACC__)
  static constexpr cuda::thread_scope kCudaScope = kScope == Scope::kBlock    ? cuda::thread_scope_block
                                                   : kScope == Scope::kDevice ? cuda::thread_scope_device
                                                                              : cuda::thread_scope_system;
  BAMQUERY_CORE cuda::atomic_ref<T, kCudaScope> ref() const {
    return cuda::atomic_ref<T, kCudaScope>(*word_);
  }
#else
  std::atomic_ref<T> ref() const { return std::atomic_ref<T>(*word_); }
#endif

  BAMQUERY_CORE void step([[maybe_unused]] bool writes) const {
#if defined(BAMQUERY_EXPLORE)
    explore::access(word_, writes);
#endif
  }

  T* word_;
};

}  // namespace bamquery
