#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/memory/large_memory.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

// Numpy's allocators (NEP 49), as its headers have them.
struct ArrayAllocator {
  void* context;
  void* (*allocate)(void* context, std::size_t size);
  void* (*allocate_zeros)(void* context, std::size_t count, std::size_t size);
  void* (*resize)(void* context, void* memory, std::size_t size);
  void (*free)(void* context, void* memory, std::size_t size);
};
struct ArrayMemory {
  char name[127];
  std::uint8_t version;
  ArrayAllocator allocator;
};
constexpr const char* kCapsule = "mem_handler";

// Of numpy's table of functions: PyDataMem_SetHandler, PyDataMem_GetHandler and PyDataMem_DefaultHandler.
struct Numpy {
  PyObject* (*set)(PyObject* memory);
  PyObject* (*get)();
  PyObject* usual;

  static const Numpy& the() {
    static const Numpy found = [] {
      const py::object table = py::module_::import("numpy._core.multiarray").attr("_ARRAY_API");
      void** const functions = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
      if (functions == nullptr) throw py::error_already_set();
      return Numpy{reinterpret_cast<PyObject* (*)(PyObject*)>(functions[304]),
                   reinterpret_cast<PyObject* (*)()>(functions[305]),
                   *static_cast<PyObject**>(functions[306])};
    }();
    return found;
  }
};

// What is not large is numpy's own allocator's, which keeps small pieces for itself.
const ArrayAllocator& usual(void* context) { return static_cast<const ArrayMemory*>(context)->allocator; }

std::byte* take(std::size_t size, bool* is_zero) noexcept {
  try {
    return take_large(size, is_zero);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* allocate(void* context, std::size_t size) {
  return size < kLeastLarge ? usual(context).allocate(usual(context).context, size) : take(size, nullptr);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t size) {
  if (count < kLeastLarge / std::max<std::size_t>(size, 1)) {
    return usual(context).allocate_zeros(usual(context).context, count, size);
  }
  if (count > SIZE_MAX / size) return nullptr;
  bool is_zero = false;
  std::byte* const memory = take(count * size, &is_zero);
  if (memory != nullptr && !is_zero) std::memset(memory, 0, count * size);
  return memory;
}

void free_memory(void* context, void* memory, std::size_t size) {
  if (!give_large(memory)) usual(context).free(usual(context).context, memory, size);
}

void* resize(void* context, void* memory, std::size_t size) {
  const std::size_t before = large_size(memory);
  if (before == 0) return usual(context).resize(usual(context).context, memory, size);
  void* const moved = allocate(context, size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, std::min(before, size));
  give_large(memory);
  return moved;
}

PyObject* large_arrays() {
  static PyObject* const found = [] {
    // They are there as long as any array is.
    static ArrayMemory memory{"bamquery", 1, {nullptr, allocate, allocate_zeros, resize, free_memory}};
    memory.allocator.context = PyCapsule_GetPointer(Numpy::the().usual, kCapsule);
    if (memory.allocator.context == nullptr) throw py::error_already_set();
    return py::capsule(&memory, kCapsule).release().ptr();
  }();
  return found;
}

void set_memory(PyObject* memory) {
  if (!py::reinterpret_steal<py::object>(Numpy::the().set(memory))) throw py::error_already_set();
}

bool begin_large_arrays() {
  const Numpy& numpy = Numpy::the();
  const auto now = py::reinterpret_steal<py::object>(numpy.get());
  if (!now) throw py::error_already_set();
  if (now.ptr() != numpy.usual) return false;
  set_memory(large_arrays());
  return true;
}

}  // namespace

void bind_memory(py::module_& module) {
  using py::arg;
  module.def("begin_large_arrays", &begin_large_arrays);
  module.def("end_large_arrays", [] { set_memory(Numpy::the().usual); });
  module.def("keep_large_memory", &keep_large, arg("most"));
  module.def("release_large_memory", &release_large, arg("but"), py::call_guard<py::gil_scoped_release>());
  module.def("large_memory", [] {
    const LargeMemory found = large_memory();
    return py::make_tuple(found.in_use, found.kept);
  });
}

}  // namespace bamquery
