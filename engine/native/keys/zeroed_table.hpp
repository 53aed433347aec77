// Memory of tables, zero at first: large ones ask for large pages, which take a third of the time to get and
// keep scattered accesses from missing their translation, too.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace bamquery {

template <typename T>
class ZeroedTable {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedTable() = default;
  explicit ZeroedTable(std::uint64_t count) : size_(count) {
    if (count > (SIZE_MAX - kLargePage) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes < kLarge) {
      memory_ = std::calloc(bytes == 0 ? 1 : bytes, 1);
      if (memory_ == nullptr) throw std::bad_alloc();
      data_ = static_cast<T*>(memory_);
      return;
    }
    mapped_ = bytes + kLargePage;
    memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      throw std::bad_alloc();
    }
    const auto start = (reinterpret_cast<std::uintptr_t>(memory_) + kLargePage - 1) / kLargePage * kLargePage;
    data_ = reinterpret_cast<T*>(start);
    madvise(data_, bytes, MADV_HUGEPAGE);  // where there are none, small ones do
  }
  ZeroedTable(ZeroedTable&& other) noexcept { swap(other); }
  ZeroedTable& operator=(ZeroedTable&& other) noexcept {
    ZeroedTable(std::move(other)).swap(*this);
    return *this;
  }
  ZeroedTable(const ZeroedTable&) = delete;
  ZeroedTable& operator=(const ZeroedTable&) = delete;
  ~ZeroedTable() {
    if (mapped_ != 0) {
      munmap(memory_, mapped_);
    } else {
      std::free(memory_);
    }
  }

  std::uint64_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& operator[](std::uint64_t place) { return data_[place]; }
  const T& operator[](std::uint64_t place) const { return data_[place]; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{2} << 20, kLarge = 2 * kLargePage;

  void swap(ZeroedTable& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  void* memory_ = nullptr;
  T* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace bamquery
