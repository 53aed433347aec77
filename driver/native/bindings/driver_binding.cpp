#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/bindings/shared_file.hpp"
#include "driver/native/crc32c.hpp"
#include "driver/native/files/block_ranges.hpp"
#include "driver/native/files/held_blocks.hpp"
#include "driver/native/files/mapped_file.hpp"
#include "driver/native/files/queue_file.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::uint32_t py_crc32c(const py::object& data, std::uint32_t seed) {
  const ByteView view(data, false);
  const py::gil_scoped_release unlocked;
  return crc32c(view.bytes(), seed);
}

std::unique_ptr<SharedFile> open_mapped(const std::filesystem::path& path, std::int64_t expected_size,
                                        std::int64_t block_size) {
  const std::string name = path.string();
  const py::gil_scoped_release unlocked;
  return std::make_unique<SharedFile>(std::make_shared<MappedFile>(name, expected_size, block_size), name);
}

DirectPath direct_path(const std::string& name) {
  if (name == "auto") return DirectPath::kAny;
  if (name == "io_uring") return DirectPath::kUring;
  if (name == "preadv") return DirectPath::kThreads;
  throw py::value_error("io is auto, io_uring or preadv");
}

std::unique_ptr<SharedFile> open_queue(const std::filesystem::path& path, std::int64_t expected_size,
                                       std::int64_t block_size, int depth, const std::string& io,
                                       double patience) {
  const std::string name = path.string();
  if (!(patience > 0 && patience < 1e9)) throw py::value_error("patience is a number of seconds above 0");
  const QueueFileOptions options{block_size, depth, direct_path(io),
                                 static_cast<std::uint64_t>(patience * 1e9)};
  const py::gil_scoped_release unlocked;
  return std::make_unique<SharedFile>(std::make_shared<QueueFile>(name, expected_size, options), name);
}

py::tuple count_row_blocks(std::int64_t base, std::int64_t stride, std::int64_t width, const RowArray& rows,
                           std::int64_t block_size) {
  check_block_size(block_size);
  const RowItems items{base, stride, width, as_span(rows)};
  ReadCounts counts;
  {
    const py::gil_scoped_release unlocked;
    counts = count_blocks(items, block_size);
  }
  return py::make_tuple(counts.commands, counts.blocks);
}

py::tuple count_bit_blocks(std::int64_t base, const RowArray& rows, std::int64_t block_size) {
  check_block_size(block_size);
  const BitItems items{base, as_span(rows)};
  ReadCounts counts;
  {
    const py::gil_scoped_release unlocked;
    counts = count_blocks(items, block_size);
  }
  return py::make_tuple(counts.commands, counts.blocks);
}

py::tuple count_range_blocks(const RowArray& offsets, const RowArray& lengths, std::int64_t block_size) {
  check_block_size(block_size);
  const RangeItems items = range_items(offsets, lengths);
  ReadCounts counts;
  {
    const py::gil_scoped_release unlocked;
    counts = count_blocks(items, block_size);
  }
  return py::make_tuple(counts.commands, counts.blocks);
}

}  // namespace

void bind_driver(py::module_& module) {
  using py::arg;
  module.def("crc32c", &py_crc32c, arg("data"), arg("seed") = 0);
  module.def("open_mapped", &open_mapped, arg("path"), arg("expected_size"), arg("block_size"));
  module.def("open_queue", &open_queue, arg("path"), arg("expected_size"), arg("block_size"), arg("depth"),
             arg("io"), arg("patience"));
  module.attr("LARGEST_READ") = FileQueues::kSlotBytes;
  module.def("count_row_blocks", &count_row_blocks, arg("base"), arg("stride"), arg("width"), arg("rows"),
             arg("block_size"));
  module.def("count_bit_blocks", &count_bit_blocks, arg("base"), arg("rows"), arg("block_size"));
  module.def("count_range_blocks", &count_range_blocks, arg("offsets"), arg("lengths"), arg("block_size"));
  py::class_<HeldBlocks>(module, "HeldBlocks").def(py::init<>());
  py::class_<SharedFile>(module, "BlockFile")
      .def_property_readonly("block_size", &SharedFile::block_size)
      .def_property_readonly("io_path", &SharedFile::io_path)
      .def_property_readonly("controller", &SharedFile::controller)
      .def("close", &SharedFile::close)
      .def("read_ranges", &SharedFile::read_ranges, arg("offsets"), arg("lengths"), arg("target"),
           arg("checksums") = py::none())
      .def("gather", &SharedFile::gather, arg("base"), arg("stride"), arg("width"), arg("rows"),
           arg("target"), arg("held") = py::none())
      .def("gather_bits", &SharedFile::gather_bits, arg("base"), arg("rows"), arg("target"));
}

}  // namespace bamquery
