// Python objects with the buffer protocol, as spans that stay valid while the views live.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>

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

template <typename T>
std::span<const T> as_span(
    const pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

}  // namespace bamquery
