// Memory of tables, zero at first. Large ones have large pages, which keep scattered accesses from missing
// their translation, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "driver/native/memory/large_memory.hpp"
#include "driver/native/threads/shared_work.hpp"

namespace bamquery {

template <typename T>
class ZeroedTable {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedTable() = default;
  explicit ZeroedTable(std::uint64_t count) : size_(count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes < kLeastLarge) {
      memory_ = static_cast<T*>(std::calloc(bytes == 0 ? 1 : bytes, 1));
      if (memory_ == nullptr) throw std::bad_alloc();
      return;
    }
    bool is_zero = false;
    memory_ = reinterpret_cast<T*>(take_large(bytes, &is_zero));
    is_large_ = true;
    if (!is_zero) clear(bytes);
  }
  ZeroedTable(ZeroedTable&& other) noexcept { swap(other); }
  ZeroedTable& operator=(ZeroedTable&& other) noexcept {
    ZeroedTable(std::move(other)).swap(*this);
    return *this;
  }
  ZeroedTable(const ZeroedTable&) = delete;
  ZeroedTable& operator=(const ZeroedTable&) = delete;
  ~ZeroedTable() {
    if (is_large_) {
      give_large(memory_);
    } else {
      std::free(memory_);
    }
  }

  std::uint64_t size() const { return size_; }
  T* data() { return memory_; }
  const T* data() const { return memory_; }
  T* begin() { return memory_; }
  T* end() { return memory_ + size_; }
  T& operator[](std::uint64_t place) { return memory_[place]; }
  const T& operator[](std::uint64_t place) const { return memory_[place]; }

 private:
  // Bytes that are worth another thread.
  static constexpr std::int64_t kLeastCleared = std::int64_t{4} << 20;

  void clear(std::size_t bytes) {
    const auto size = static_cast<std::int64_t>(bytes);
    auto* const begin = reinterpret_cast<std::byte*>(memory_);
    share_items(size, worth_parts(size, kLeastCleared), 1,
                [&](std::int64_t, std::int64_t first, std::int64_t own) {
                  std::memset(begin + first, 0, static_cast<std::size_t>(own));
                });
  }

  void swap(ZeroedTable& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(is_large_, other.is_large_);
  }

  T* memory_ = nullptr;
  std::uint64_t size_ = 0;
  bool is_large_ = false;
};

}  // namespace bamquery
