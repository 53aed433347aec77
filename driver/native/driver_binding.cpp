#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <vector>

#include "bindings.hpp"
#include "buffers.hpp"
#include "crc32c.hpp"
#include "file_write.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::uint32_t py_crc32c(const py::object& data, std::uint32_t seed) {
  const ByteView view(data, false);
  const py::gil_scoped_release unlocked;
  return crc32c(view.bytes(), seed);
}

void py_write_buffers(int descriptor, std::int64_t offset, const py::sequence& buffers,
                      const std::filesystem::path& path) {
  std::vector<ByteView> views;  // pins every buffer until all is written
  std::vector<iovec> vectors;
  views.reserve(buffers.size());
  for (const py::handle buffer : buffers) {
    const auto bytes = views.emplace_back(buffer, false).bytes();
    vectors.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});  // iovec knows no const
  }
  const py::gil_scoped_release unlocked;
  write_buffers(descriptor, offset, std::move(vectors), path.string());
}

}  // namespace

void bind_driver(py::module_& module) {
  using py::arg;
  module.def("crc32c", &py_crc32c, arg("data"), arg("seed") = 0);
  module.def("write_buffers", &py_write_buffers, arg("fd"), arg("offset"), arg("buffers"), arg("path"));
}

}  // namespace bamquery
