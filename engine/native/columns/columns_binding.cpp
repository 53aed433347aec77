#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "engine/native/columns/append.hpp"
#include "engine/native/columns/gather.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

std::size_t bytes_of(std::int64_t rows, int bits) {
  return (static_cast<std::size_t>(rows) * static_cast<std::size_t>(bits) + 7) / 8;
}

// What Python has given, held while C++ looks at it.
class Held {
 public:
  std::span<const std::byte> bytes(const py::handle& object) {
    return object.is_none() ? std::span<const std::byte>{} : views_.emplace_back(object, false).bytes();
  }

  // A buffer to write `size` bytes to.
  std::byte* room(const py::handle& object, std::size_t size) {
    const auto found = views_.emplace_back(object, true).writable();
    require(size <= found.size(), "a result has no room");
    return found.data();
  }

  std::uint8_t* bitmap(const py::handle& object, std::int64_t rows) {
    return object.is_none() ? nullptr : reinterpret_cast<std::uint8_t*>(room(object, bytes_of(rows, 1)));
  }

  Bits bits(const py::handle& object, std::int64_t first, std::int64_t rows) {
    if (object.is_none()) return {};
    const auto found = bytes(object);
    require(bytes_of(first + rows, 1) <= found.size(), "a bitmap is too small");
    return {reinterpret_cast<const std::uint8_t*>(found.data()), first};
  }

  // Of (bitmap or None, values, first row, rows).
  FixedColumn fixed(const py::handle& given, int bits_each) {
    const auto [valid, values, first, rows] = parts(given);
    FixedColumn column{nullptr, bits_each, rows, {}, bits(valid, first, rows)};
    if (bits_each == 1) {
      column.flags = bits(values, first, rows);
      require(!values.is_none() || rows == 0, "there are no values");
      return column;
    }
    const auto found = bytes(values);
    require(bytes_of(first + rows, bits_each) <= found.size(), "values are too few");
    column.values = found.data() + bytes_of(first, bits_each);
    return column;
  }

  // Of (bitmap or None, offsets, data or None, first row, rows), of which there is one.
  GivenStrings strings(const py::handle& given) {
    const auto tuple = py::cast<py::tuple>(given);
    require(tuple.size() == 5, "strings are bitmap, offsets, data, first row and rows");
    const auto first = py::cast<std::int64_t>(tuple[3]), rows = py::cast<std::int64_t>(tuple[4]);
    require(0 <= first && first <= kMostRows && 0 < rows && rows <= kMostRows, "there are no such rows");
    const auto offsets =
        span_of<std::int64_t>(views_.emplace_back(tuple[1], false), "offsets have 8 bytes each");
    require(static_cast<std::size_t>(first + rows) < offsets.size(), "offsets are too few");
    return {offsets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows) + 1),
            bytes(tuple[2]), bits(tuple[0], first, rows)};
  }

  // Of (bitmap or None, values, first row, rows).
  Places places(const py::handle& given, int width) {
    require(width == 4 || width == 8, "places have 4 or 8 bytes");
    const FixedColumn column = fixed(given, 8 * width);
    require(reinterpret_cast<std::uintptr_t>(column.values) % static_cast<std::uintptr_t>(width) == 0,
            "places are not aligned");
    return {column.values, width, column.rows, column.valid};
  }

 private:
  struct Parts {
    py::object valid, values;
    std::int64_t first, rows;
  };

  static Parts parts(const py::handle& given) {
    const auto tuple = py::cast<py::tuple>(given);
    require(tuple.size() == 4, "a column is bitmap, values, first row and rows");
    Parts found{tuple[0], tuple[1], py::cast<std::int64_t>(tuple[2]), py::cast<std::int64_t>(tuple[3])};
    require(0 <= found.first && found.first <= kMostRows && 0 <= found.rows && found.rows <= kMostRows,
            "there are no such rows");
    return found;
  }

  std::list<ByteView> views_;
};

void require_bits(int bits) {
  require(bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128,
          "values have no such width");
}

constexpr const char* kOutside = "a place is outside, or a string";

std::vector<std::int64_t> py_gather_columns(const py::sequence& columns, const std::vector<int>& bits,
                                            const py::tuple& places, int width, const py::sequence& values,
                                            const py::sequence& bitmaps) {
  const std::size_t count = bits.size();
  require(columns.size() == count && values.size() == count && bitmaps.size() == count,
          "results are not as many as columns");
  Held held;
  const Places wanted = held.places(places, width);
  std::vector<FixedColumn> given;
  std::vector<GatheredColumn> out;
  for (std::size_t c = 0; c < count; ++c) {
    require_bits(bits[c]);
    given.push_back(held.fixed(columns[c], bits[c]));
    require(given[c].rows == given[0].rows, "columns are not equally long");
    out.push_back(
        {held.room(values[c], bytes_of(wanted.count, bits[c])), held.bitmap(bitmaps[c], wanted.count)});
    require(out[c].bitmap != nullptr || (given[c].valid.all_set() && wanted.valid.all_set()),
            "there is no bitmap for nulls");
  }
  bool inside;
  {
    const py::gil_scoped_release unlocked;
    inside = gather_values(given, wanted, out);
  }
  require(inside, kOutside);
  std::vector<std::int64_t> nulls;
  for (const GatheredColumn& column : out) nulls.push_back(column.nulls);
  return nulls;
}

py::tuple py_gather_strings(const py::tuple& column, const py::tuple& places, int width,
                            const py::object& offsets, const py::object& bitmap, const py::object& allocate) {
  Held held;
  const Places wanted = held.places(places, width);
  const GivenStrings given = held.strings(column);
  auto* const ends = reinterpret_cast<std::int64_t*>(held.room(offsets, bytes_of(wanted.count + 1, 64)));
  require(reinterpret_cast<std::uintptr_t>(ends) % alignof(std::int64_t) == 0, "offsets are not aligned");
  std::uint8_t* const bits = held.bitmap(bitmap, wanted.count);
  require(bits != nullptr || (given.valid.all_set() && wanted.valid.all_set()),
          "there is no bitmap for nulls");
  std::int64_t nulls = 0;
  std::optional<std::int64_t> size;
  {
    const py::gil_scoped_release unlocked;
    size = gather_offsets(given, wanted, ends, bits, nulls);
  }
  require(size.has_value(), kOutside);
  py::object data = allocate(*size);
  std::byte* const to = held.room(data, static_cast<std::size_t>(*size));
  {
    const py::gil_scoped_release unlocked;
    gather_strings(given, wanted, ends, to);
  }
  return py::make_tuple(data, nulls);
}

void py_append_values(const py::sequence& columns, int bits, const py::object& values,
                      const py::object& bitmap) {
  require_bits(bits);
  require(bits != 1 && columns.size() > 0, "there are no values of whole bytes");
  Held held;
  std::vector<FixedColumn> given;
  std::int64_t rows = 0;
  for (const py::handle& column : columns) {
    given.push_back(held.fixed(column, bits));
    require(bitmap.is_none() <= given.back().valid.all_set(), "there is no bitmap for nulls");
    rows += given.back().rows;
  }
  std::byte* const to = held.room(values, bytes_of(rows, bits));
  std::uint8_t* const valid = held.bitmap(bitmap, rows);
  const py::gil_scoped_release unlocked;
  append_values(given, to, valid);
}

py::object py_append_strings(const py::sequence& columns, const py::object& offsets, const py::object& bitmap,
                             const py::object& allocate) {
  require(columns.size() > 0, "there are no columns");
  Held held;
  std::vector<GivenStrings> given;
  std::int64_t rows = 0;
  for (const py::handle& column : columns) {
    given.push_back(held.strings(column));
    require(bitmap.is_none() <= given.back().valid.all_set(), "there is no bitmap for nulls");
    rows += static_cast<std::int64_t>(given.back().offsets.size()) - 1;
  }
  auto* const ends = reinterpret_cast<std::int64_t*>(held.room(offsets, bytes_of(rows + 1, 64)));
  require(reinterpret_cast<std::uintptr_t>(ends) % alignof(std::int64_t) == 0, "offsets are not aligned");
  std::uint8_t* const valid = held.bitmap(bitmap, rows);
  const std::vector<std::int64_t> before = bytes_before(given);
  require(!before.empty(), kOutside);
  py::object data = allocate(before.back());
  std::byte* const to = held.room(data, static_cast<std::size_t>(before.back()));
  bool ascend;
  {
    const py::gil_scoped_release unlocked;
    ascend = append_strings(given, before, ends, to, valid);
  }
  require(ascend, kOutside);
  return data;
}

}  // namespace

void bind_columns(py::module_& module) {
  using py::arg;
  module.def("gather_columns", &py_gather_columns, arg("columns"), arg("bits"), arg("places"), arg("width"),
             arg("values"), arg("bitmaps"));
  module.def("gather_strings", &py_gather_strings, arg("column"), arg("places"), arg("width"), arg("offsets"),
             arg("bitmap"), arg("allocate"));
  module.def("append_values", &py_append_values, arg("columns"), arg("bits"), arg("values"), arg("bitmap"));
  module.def("append_strings", &py_append_strings, arg("columns"), arg("offsets"), arg("bitmap"),
             arg("allocate"));
}

}  // namespace bamquery
