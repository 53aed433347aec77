#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/threads/shared_work.hpp"
#include "engine/native/strings/match_parts.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

// Rows that are worth another thread.
constexpr std::int64_t kLeastRows = 1 << 15;

py::array_t<std::uint8_t> py_match_parts(const py::object& offsets, const py::object& data, std::size_t begin,
                                         std::size_t rows, const std::vector<std::string>& parts,
                                         bool at_start, bool at_end, std::size_t shift) {
  const ByteView offsets_view(offsets, false), data_view(data, false);
  auto all = span_of<std::int64_t>(offsets_view, "offsets have 8 bytes each");
  require(begin < all.size() && rows < all.size() - begin, "offsets are too few");
  require(!parts.empty(), "there is no part");
  for (const std::string& part : parts) require(!part.empty(), "a part is empty");
  all = all.subspan(begin, rows + 1);
  const std::size_t size = (shift + rows + 7) / 8;
  py::array_t<std::uint8_t> bits(static_cast<py::ssize_t>(size));
  std::uint8_t* out = bits.mutable_data();
  bool ascends = all.front() >= 0;
  {
    const py::gil_scoped_release unlocked;
    std::fill_n(out, size, std::uint8_t{0});
    for (std::size_t row = 0; row < rows; ++row) ascends &= all[row] <= all[row + 1];
    ascends &= static_cast<std::uint64_t>(all.back()) <= data_view.bytes().size();
    if (ascends) {
      const auto* bytes = reinterpret_cast<const char*>(data_view.bytes().data());
      const PatternParts pattern{parts, at_start, at_end};
      const auto count = static_cast<std::int64_t>(rows);
      // Runs of rows that begin with a byte of the bits, but for the first.
      const auto begin_of = [&](std::int64_t run) {
        return run == 0 ? std::int64_t{0} : 8 * run - static_cast<std::int64_t>(shift % 8);
      };
      const std::int64_t bytes_of = (count + static_cast<std::int64_t>(shift % 8) + 7) / 8;
      share_items(bytes_of, worth_parts(count, kLeastRows), 1,
                  [&](std::int64_t, std::int64_t first, std::int64_t own) {
                    if (own == 0) return;
                    const std::int64_t row = begin_of(first), stop = std::min(begin_of(first + own), count);
                    match_parts(
                        pattern,
                        all.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(stop - row) + 1),
                        bytes, shift + static_cast<std::size_t>(row), out);
                  });
    }
  }
  require(ascends, "offsets do not ascend, or data is too small");
  return bits;
}

}  // namespace

void bind_strings(py::module_& module) {
  using py::arg;
  module.def("match_parts", &py_match_parts, arg("offsets"), arg("data"), arg("begin"), arg("rows"),
             arg("parts"), arg("at_start"), arg("at_end"), arg("shift"));
}

}  // namespace bamquery
