// Doorbells in memory that a controller looks at by itself (Doorbell Buffer Config, NVM Express Base
// Specification 2.0, 5.8 and B.5).
#pragma once

#include <atomic>
#include <cstdint>

#include "driver/core/atomics.hpp"
#include "driver/core/nvme.hpp"
#include "driver/native/nvme/dma_space.hpp"

namespace bamquery {

/// Whether a controller that asked to be told of a value (EventIdx) has to be told by its register, now that
/// a doorbell went from one value to another. All count round a ring whose size divides 65,536.
constexpr bool needs_register(std::uint32_t event, std::uint32_t before, std::uint32_t now) {
  return static_cast<std::uint16_t>(now - event - 1) < static_cast<std::uint16_t>(now - before);
}

/// Between a store to one word and a load of another: the other side, which does it the other way round, sees
/// the store, or the load sees its own. No fence of the language's, which ThreadSanitizer does not know.
inline void fence_shadows() {
#if defined(__x86_64__)
  asm volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dmb ish" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Two pages laid out like the doorbell registers: what we want the controller to know, and of which values
/// it wants to be told. QEMU's controller writes to the first, too: the admin queue's, as its register has
/// it.
class ShadowDoorbells {
 public:
  ShadowDoorbells(DmaSpace& space, std::uint32_t stride)
      : stride_(stride),
        values_(space, kPage, QueueAccess::kReadsAndWrites),
        events_(space, kPage, QueueAccess::kReadsAndWrites) {}

  /// How many queues the pages have doorbells for, the admin queue among them.
  static constexpr std::uint32_t queues(std::uint32_t stride) {
    return static_cast<std::uint32_t>(kPage / (2 * (std::size_t{4} << stride)));
  }

  /// The pages' addresses.
  std::uint64_t values() const { return values_.iova(); }
  std::uint64_t events() const { return events_.iova(); }

  /// Laid out as registers from 1000h on.
  std::byte* doorbells() const { return values_.data(); }

  /// Of which value at an offset among the doorbells the controller wants to be told.
  std::uint32_t event(std::uint32_t offset) const {
    // Acquire: see DoorbellForwarder.
    return AtomicRef<std::uint32_t, Scope::kSystem>(word(events_, offset)).load(kAcquire);
  }

  /// As for a queue pair that is new.
  void forget(std::uint32_t queue) {
    for (const std::uint32_t offset :
         {tail_doorbell_offset(queue, stride_), head_doorbell_offset(queue, stride_)}) {
      for (const DmaPages* pages : {&values_, &events_}) {
        AtomicRef<std::uint32_t, Scope::kSystem>(word(*pages, offset)).store(0, kRelaxed);
      }
    }
  }
  /// As for a controller that is new.
  void clear() {
    for (std::uint32_t queue = 0; queue < queues(stride_); ++queue) forget(queue);
  }

 private:
  static constexpr std::size_t kPage = 4096;

  static std::uint32_t& word(const DmaPages& pages, std::uint32_t offset) {
    return *reinterpret_cast<std::uint32_t*>(pages.data() + offset);
  }

  std::uint32_t stride_;
  DmaPages values_;
  DmaPages events_;
};

}  // namespace bamquery
