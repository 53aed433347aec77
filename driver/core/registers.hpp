// Registers of a device other than the memory that it reads.
#pragma once

#include "driver/core/atomics.hpp"

namespace bamquery {

/// Stores to a register by which a device hears of something in memory. A release orders words of one memory;
/// on the way to two devices stores may pass each other. So all that this thread stored, and all that it
/// knows others to have stored, is there before the register is written.
BAMQUERY_CORE void store_register(uint32_t& word, uint32_t value) {
#if defined(__CUDACC__)
  // Cumulative: whose mark was acquired, their entries are there, too. A store that caches and combines
  // nothing follows (PTX ISA 8.2, 9.7.9.12: st.mmio).
  __threadfence_system();
  asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(&word)), "r"(value)
               : "memory");
#else
#if defined(BAMQUERY_EXPLORE)
  explore::fence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");  // On x86 stores keep their order, mapped uncached or not.
#elif !defined(__x86_64__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  AtomicRef<uint32_t, Scope::kSystem>(word).store(value, kRelease);
#endif
}

}  // namespace bamquery
