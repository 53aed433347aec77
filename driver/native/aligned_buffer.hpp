// Memory that devices can read into.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace bamquery {

// No device asks more of a buffer's address.
inline constexpr std::size_t kBufferAlignment = 4096;

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, FreeMemory>;

inline AlignedBuffer allocate_aligned(std::size_t size) {
  const std::size_t rounded = (size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBuffer(memory);
}

}  // namespace bamquery
