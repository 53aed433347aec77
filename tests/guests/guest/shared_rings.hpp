// Rings that a guest's drive serves, and a process of the host drives: what each says to the other, in the
// first page of memory that both see. Queue pairs begin with the second. tests/guests/host/shared_rings.py
// has the same for Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "driver/native/queues/queue_memory.hpp"

namespace guests {

enum class Stage : std::uint32_t { kNothing, kServed, kDone };

struct SharedRings {
  static constexpr std::size_t kPage = 4096;

  std::atomic<Stage> stage;  ///< What stands before it was written before.
  std::uint32_t nsid;
  bamquery::QueueShape shape;
  std::uint32_t queue;   ///< Number of the first pair.
  std::uint64_t bus;     ///< What the drive calls the second page.
  std::uint64_t blocks;  ///< Of the namespace.
};
static_assert(sizeof(SharedRings) == 56 && offsetof(SharedRings, shape) == 8 &&
              offsetof(SharedRings, queue) == 36 && offsetof(SharedRings, bus) == 40);

inline SharedRings& shared_rings(std::byte* memory) { return *reinterpret_cast<SharedRings*>(memory); }

/// False: it did not come to that within so many seconds.
inline bool await(const SharedRings& rings, Stage stage, int seconds) {
  const timespec nap{0, 2'000'000};
  for (int looks = seconds * 500; looks > 0; --looks) {
    if (rings.stage.load(std::memory_order_acquire) == stage) return true;
    nanosleep(&nap, nullptr);
  }
  return false;
}

}  // namespace guests
