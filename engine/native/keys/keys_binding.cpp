#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "engine/native/keys/held_columns.hpp"
#include "engine/native/keys/key_table.hpp"
#include "engine/native/keys/number_set.hpp"
#include "engine/native/keys/number_summary.hpp"
#include "engine/native/keys/partition.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

using Numbers = py::array;

template <typename T>
using Plain = py::array_t<T, py::array::c_style>;

std::byte* bytes_of(py::array& array) { return static_cast<std::byte*>(array.mutable_data()); }

py::object py_key_table(const py::sequence& keys, const std::vector<bool>& nulls_equal) {
  const HeldColumns columns(keys);
  require(nulls_equal.size() == columns.views().size(), "each key says whether nulls are equal");
  require(columns.rows() < KeyTable::kMostRows, "too many rows for 32 bits");
  std::optional<KeyTable> table;
  {
    const py::gil_scoped_release unlocked;
    table = KeyTable::make(columns.views(), columns.rows(), nulls_equal);
  }
  return table ? py::cast(std::move(*table)) : py::none();
}

py::tuple py_find_pairs(const KeyTable& table, const py::sequence& keys, std::int64_t start,
                        std::int64_t rows, std::int64_t pairs) {
  const HeldColumns columns(keys);
  require(columns.views().size() == table.columns(), "the table has another number of keys");
  require(start >= 0 && rows >= 0 && pairs >= 0 && start <= columns.rows() && rows <= columns.rows() - start,
          "there are no such rows");
  KeyTable::Lookup lookup;
  {
    const py::gil_scoped_release unlocked;
    lookup = table.look_up(columns.views(), start, rows, pairs);
  }
  py::array_t<std::int64_t> positions(lookup.pairs), found(lookup.pairs);
  std::int64_t* const to_positions = positions.mutable_data();
  std::int64_t* const to_found = found.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    table.write_pairs(lookup, start, to_positions, to_found);
  }
  return py::make_tuple(start + lookup.rows, positions, found);
}

py::array_t<std::uint8_t> py_mark(const KeyTable& table, const py::sequence& keys) {
  const HeldColumns columns(keys);
  require(columns.views().size() == table.columns(), "the table has another number of keys");
  py::array_t<std::uint8_t> marks(columns.rows());
  std::uint8_t* const out = marks.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    table.mark(columns.views(), columns.rows(), out);
  }
  return marks;
}

NumberSet make_number_set(const py::array& members) {
  const HeldColumn column(members, py::none(), 0);
  require(column.view().width <= 8, "members have more than 64 bits");
  const py::gil_scoped_release unlocked;
  return NumberSet(column.view());
}

py::array_t<std::uint8_t> py_contains(const NumberSet& set, const py::array& values) {
  const HeldColumn column(values, py::none(), 0);
  require(column.view().width <= 8, "values have more than 64 bits");
  py::array_t<std::uint8_t> bits((column.view().rows + 7) / 8);
  std::uint8_t* out = bits.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    set.contains(column.view(), out);
  }
  return bits;
}

// The words of numbers as values of a type.
py::array as_numbers(std::vector<std::uint64_t>&& words, const py::dtype& type) {
  py::array found = array_of<std::uint64_t>(std::move(words));
  return type.itemsize() == 8 ? found.attr("view")(type) : found.attr("astype")(type);
}

py::tuple py_summarize_numbers(const py::sequence& given, bool wants_distinct) {
  require(py::len(given) > 0, "there are no columns");
  std::vector<HeldColumn> held;
  std::vector<KeyColumn> columns;
  held.reserve(py::len(given));
  for (const py::handle& column : given) {
    held.push_back(hold_column(column));
    columns.push_back(held.back().view());
    require(columns.back().width <= 8, "values have more than 64 bits");
    require(columns.back().width == columns.front().width &&
                columns.back().is_signed == columns.front().is_signed,
            "columns are of several types");
  }
  NumberSummary summary;
  {
    const py::gil_scoped_release unlocked;
    summary = summarize_numbers(columns, wants_distinct);
  }
  const py::dtype type = held.front().type();
  std::vector<std::uint64_t> bounds;
  if (summary.count > 0) bounds = {summary.low, summary.high};
  py::object distinct = py::none();
  if (summary.distinct) distinct = as_numbers(std::move(*summary.distinct), type);
  return py::make_tuple(summary.count, as_numbers(std::move(bounds), type), distinct);
}

py::array_t<std::uint64_t> py_hash_rows(const py::sequence& keys) {
  const HeldColumns columns(keys);
  py::array_t<std::uint64_t> hashes(columns.rows());
  std::uint64_t* out = hashes.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    hash_rows(columns.views(), columns.rows(), out);
  }
  return hashes;
}

py::array_t<std::uint64_t> py_hash_strings(const Plain<std::int64_t>& offsets, const py::object& data) {
  require(offsets.ndim() == 1 && offsets.size() > 0, "strings have an offset each, and one more");
  const ByteView bytes(data, false);
  py::array_t<std::uint64_t> hashes(offsets.size() - 1);
  std::uint64_t* out = hashes.mutable_data();
  const std::span<const std::int64_t> from(offsets.data(), static_cast<std::size_t>(offsets.size()));
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = hash_strings(from, reinterpret_cast<const std::byte*>(bytes.bytes().data()),
                            static_cast<std::int64_t>(bytes.bytes().size()), out);
  }
  require(is_right, "a string is outside of its data");
  return hashes;
}

py::tuple py_partition_rows(const Plain<std::uint64_t>& hashes, int shift, std::int64_t count) {
  require(count > 0 && count <= 1 << 16, "no such number of partitions");
  require(shift >= 0 && shift < 64, "no such bits");
  py::array_t<std::int64_t> order(hashes.size()), ends(count);
  std::int64_t* out = order.mutable_data();
  const std::span<std::int64_t> to_ends(ends.mutable_data(), static_cast<std::size_t>(count));
  const std::span<const std::uint64_t> from(hashes.data(), static_cast<std::size_t>(hashes.size()));
  {
    const py::gil_scoped_release unlocked;
    partition_rows(from, shift, to_ends, out);
  }
  return py::make_tuple(order, ends);
}

py::array py_gather_values(const py::array& values, const Plain<std::int64_t>& places) {
  const auto width = static_cast<int>(values.dtype().itemsize());
  require(width == 1 || width == 2 || width == 4 || width == 8, "no such width");
  require(!values.dtype().has_fields() && values.dtype().kind() != 'O', "values are numbers");
  require(values.ndim() == 1 && ((values.flags() & py::array::c_style) != 0 || values.size() == 0),
          "values have gaps");
  py::array found(values.dtype(), std::vector<py::ssize_t>{places.size()});
  std::byte* out = bytes_of(found);
  const auto* from = static_cast<const std::byte*>(values.data());
  const std::int64_t count = values.size();
  const std::span<const std::int64_t> asked(places.data(), static_cast<std::size_t>(places.size()));
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = gather_values(from, count, width, asked, out);
  }
  require(is_right, "there is no such value");
  return found;
}

int py_order_of_places(const RowArray& places) {
  require(places.ndim() == 1, "places are one each");
  const std::span<const std::int64_t> given(places.data(), static_cast<std::size_t>(places.size()));
  const py::gil_scoped_release unlocked;
  return static_cast<int>(order_of_places(given));
}

void py_set_flags(const RowArray& places, Plain<bool>& flags) {
  static_assert(sizeof(bool) == sizeof(std::uint8_t));
  require(places.ndim() == 1 && flags.ndim() == 1, "places and flags are one each");
  auto* const out = reinterpret_cast<std::uint8_t*>(flags.mutable_data());
  const std::span<std::uint8_t> to(out, static_cast<std::size_t>(flags.size()));
  const std::span<const std::int64_t> given(places.data(), static_cast<std::size_t>(places.size()));
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = set_flags(given, to);
  }
  require(is_right, "there is no such flag");
}

}  // namespace

void bind_keys(py::module_& module) {
  py::class_<KeyTable>(module, "KeyTable")
      .def_property_readonly("nbytes", &KeyTable::nbytes)
      .def("mark", &py_mark, py::arg("keys"))
      .def("find_pairs", &py_find_pairs, py::arg("keys"), py::arg("start"), py::arg("rows"),
           py::arg("pairs"));
  module.def("key_table", &py_key_table, py::arg("keys"), py::arg("nulls_equal"));
  py::class_<NumberSet>(module, "NumberSet")
      .def(py::init(&make_number_set), py::arg("members"))
      .def("contains", &py_contains, py::arg("values"));
  module.def("summarize_numbers", &py_summarize_numbers, py::arg("columns"), py::arg("wants_distinct"));
  module.def("hash_rows", &py_hash_rows, py::arg("keys"));
  module.def("hash_strings", &py_hash_strings, py::arg("offsets").noconvert(), py::arg("data"));
  module.def("partition_rows", &py_partition_rows, py::arg("hashes").noconvert(), py::arg("shift"),
             py::arg("partitions"));
  module.def("order_of_places", &py_order_of_places, py::arg("places"));
  module.def("set_flags", &py_set_flags, py::arg("places"), py::arg("flags").noconvert());
  module.def("gather_values", &py_gather_values, py::arg("values"), py::arg("places").noconvert());
}

}  // namespace bamquery
