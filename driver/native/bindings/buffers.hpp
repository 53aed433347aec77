// Python objects with the buffer protocol, as spans that stay valid while the views live.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace bamquery {

using RowArray = pybind11::array_t<std::int64_t, pybind11::array::c_style | pybind11::array::forcecast>;

/// A contiguous view of any bytes-like object; holding it pins the memory, so the GIL may be released.
class ByteView {
 public:
  ByteView(const pybind11::handle& object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE | PyBUF_SIMPLE : PyBUF_SIMPLE) !=
        0) {
      throw pybind11::error_already_set();
    }
  }
  ByteView(const ByteView&) = delete;
  ByteView& operator=(const ByteView&) = delete;
  ByteView(ByteView&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  ByteView& operator=(ByteView&&) = delete;
  ~ByteView() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  std::span<std::byte> writable() const {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

/// Sizes are checked where Python's arguments come in, once, so that a wrong call is an exception and never a
/// stray write.
inline void require(bool condition, const char* what) {
  if (!condition) throw pybind11::value_error(what);
}

/// An array of a type, where a bytes-like object is given; ValueError (`what`) where it is none of it.
template <typename T>
std::span<const T> span_of(const ByteView& view, const char* what) {
  const auto* data = view.bytes().data();
  require(view.bytes().size() % sizeof(T) == 0, what);
  require(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, "it is not aligned");
  return {reinterpret_cast<const T*>(data), view.bytes().size() / sizeof(T)};
}

/// An array with a copy of a few values. What is kept for long must not lie between what soon is let go of.
template <typename T>
pybind11::array_t<T> copy_of(const std::vector<T>& values) {
  return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(values.size()), values.data());
}

/// An array that takes the values over: they may be large.
template <typename T, typename Value, typename Allocator>
pybind11::array_t<T> array_of(std::vector<Value, Allocator>&& values) {
  static_assert(sizeof(T) == sizeof(Value));
  using Values = std::vector<Value, Allocator>;
  auto owned = std::make_unique<Values>(std::move(values));
  const auto* data = reinterpret_cast<const T*>(owned->data());
  const auto size = static_cast<pybind11::ssize_t>(owned->size());
  const pybind11::capsule owner(owned.release(), [](void* vector) { delete static_cast<Values*>(vector); });
  return pybind11::array_t<T>(size, data, owner);
}

template <typename T>
std::span<const T> as_span(
    const pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

}  // namespace bamquery
