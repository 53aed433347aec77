// Vectors whose memory is kept once they are gone, where it is large.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "driver/native/memory/large_memory.hpp"

namespace bamquery {

template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename Other>
  LargeAllocator(const LargeAllocator<Other>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    if (!is_large(count)) return std::allocator<T>().allocate(count);
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return reinterpret_cast<T*>(take_large(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (is_large(count)) {
      give_large(memory);
    } else {
      std::allocator<T>().deallocate(memory, count);
    }
  }
  friend bool operator==(const LargeAllocator& /*one*/, const LargeAllocator& /*other*/) { return true; }

 private:
  static bool is_large(std::size_t count) { return count >= kLeastLarge / sizeof(T); }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace bamquery
