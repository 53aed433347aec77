#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "storage/native/packed/fsst/check_strings.hpp"
#include "storage/native/packed/fsst/pack_strings.hpp"
#include "storage/native/packed/fsst/train.hpp"
#include "storage/native/packed/fsst/unpack_strings.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

SymbolTable symbols_of(const py::bytes& symbols) {
  const std::string stored = symbols;
  return load_symbols(std::as_bytes(std::span(stored)));
}

py::tuple py_fsst_symbols(const py::bytes& symbols) {
  const SymbolTable table = symbols_of(symbols);
  return py::make_tuple(
      py::array_t<std::uint64_t>(static_cast<py::ssize_t>(table.bytes.size()), table.bytes.data()),
      py::array_t<std::uint8_t>(static_cast<py::ssize_t>(table.lengths.size()), table.lengths.data()));
}

// Strings that a caller has as Arrow does.
struct PlainStrings {
  PlainStrings(const py::object& offsets_, std::int64_t rows, const py::object& data_,
               std::int64_t data_start_)
      : offsets_view(offsets_, false), data_view(data_, false), data_start(data_start_) {
    offsets = span_of<std::int64_t>(offsets_view, "offsets have 8 bytes each");
    require(rows >= 0 && static_cast<std::size_t>(rows) < offsets.size(), "offsets are too few");
    offsets = offsets.first(static_cast<std::size_t>(rows) + 1);
    bool ascends = offsets.front() >= data_start;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) ascends &= offsets[row] <= offsets[row + 1];
    require(ascends, "offsets do not ascend");
    require(static_cast<std::uint64_t>(offsets.back() - data_start) <= data_view.bytes().size(),
            "data is too small");
  }

  ByteView offsets_view;
  ByteView data_view;
  std::span<const std::int64_t> offsets;
  std::int64_t data_start;
};

py::bytes py_fsst_train(const py::object& offsets, std::int64_t rows, const py::object& data,
                        std::int64_t data_start) {
  const PlainStrings strings(offsets, rows, data, data_start);
  std::vector<std::byte> stored;
  {
    const py::gil_scoped_release unlocked;
    stored = store_symbols(train_symbols(strings.offsets, strings.data_view.bytes().data(), data_start));
  }
  return {reinterpret_cast<const char*>(stored.data()), stored.size()};
}

py::tuple py_fsst_pack(const py::bytes& symbols, const py::object& offsets, std::int64_t rows,
                       const py::object& data, std::int64_t data_start, const py::object& validity) {
  const SymbolTable table = symbols_of(symbols);
  const PlainStrings strings(offsets, rows, data, data_start);
  std::optional<ByteView> valid;
  if (!validity.is_none()) valid.emplace(validity, false);
  require(!valid || static_cast<std::size_t>(rows + 7) / 8 <= valid->bytes().size(), "bitmap is too small");
  PackedStrings packed;
  {
    const py::gil_scoped_release unlocked;
    packed = pack_strings(table, strings.offsets, strings.data_view.bytes().data(), data_start,
                          valid ? reinterpret_cast<const std::uint8_t*>(valid->bytes().data()) : nullptr);
  }
  py::array_t<std::uint8_t> parameters(
      {static_cast<py::ssize_t>(packed.vectors.size()), static_cast<py::ssize_t>(sizeof(StringVector))});
  if (!packed.vectors.empty()) {
    std::memcpy(parameters.mutable_data(), packed.vectors.data(),
                packed.vectors.size() * sizeof(StringVector));
  }
  return py::make_tuple(array_of<std::uint8_t>(std::move(packed.payload)), parameters, copy_of(packed.crcs));
}

py::tuple as_tuple(Strings&& found) {
  found.data.resize(static_cast<std::size_t>(found.offsets.back()));
  const auto bytes = array_of<std::uint8_t>(std::move(found.data));
  return py::make_tuple(array_of<std::int64_t>(std::move(found.offsets)), bytes,
                        array_of<std::uint8_t>(std::move(found.bitmap)), found.nulls);
}

py::tuple py_fsst_unpack(const py::bytes& symbols, const py::object& payload, const RowArray& starts,
                         const py::object& parameters, const RowArray& rows,
                         const std::optional<RowArray>& positions) {
  const SymbolTable table = symbols_of(symbols);
  const ByteView data(payload, false);
  const ByteView given(parameters, false);
  const StringVectors vectors{data.bytes(), as_span(starts),
                              span_of<StringVector>(given, "parameters have 48 bytes a vector"),
                              as_span(rows)};
  require(vectors.starts.size() == vectors.vectors.size() && vectors.rows.size() == vectors.vectors.size(),
          "starts, parameters and rows are not as many");
  Strings found;
  {
    const std::span<const std::int64_t> wanted =
        positions ? as_span(*positions) : std::span<const std::int64_t>();
    const py::gil_scoped_release unlocked;
    found = positions ? pick_strings(table, vectors, wanted) : unpack_strings(table, vectors);
  }
  return as_tuple(std::move(found));
}

// A column that a caller has the parameters of.
struct ColumnView {
  ColumnView(const py::object& parameters, std::int64_t rows, std::int64_t data_bytes)
      : view(parameters, false),
        column{span_of<StringVector>(view, "parameters have 48 bytes a vector"), rows, data_bytes} {}

  ByteView view;
  StringColumn column;
};

py::tuple py_check_fsst_column(const py::object& parameters, std::int64_t column_rows,
                               std::int64_t data_bytes) {
  const ColumnView given(parameters, column_rows, data_bytes);
  const auto count = static_cast<py::ssize_t>(given.column.vectors.size());
  py::array_t<std::int64_t> starts(count);
  py::array_t<std::int64_t> sizes(count);
  py::array_t<std::int64_t> code_bytes(count);
  const StringColumnPayloads payloads{starts.mutable_data(), sizes.mutable_data(), code_bytes.mutable_data()};
  std::optional<StringColumnFault> fault;
  std::uint64_t plain_bytes = 0;
  {
    const py::gil_scoped_release unlocked;
    fault = check_string_column(given.column, payloads);
    plain_bytes = plain_string_bytes(given.column);
  }
  py::object found = py::none();
  if (fault) found = py::make_tuple(fault->vector, fault->what);
  return py::make_tuple(starts, sizes, code_bytes, plain_bytes, found);
}

py::array_t<std::int64_t> py_fsst_places(const py::object& parameters, std::int64_t column_rows,
                                         std::int64_t data_bytes, const RowArray& rows) {
  const ColumnView given(parameters, column_rows, data_bytes);
  std::vector<std::int64_t> places;
  {
    const auto wanted = as_span(rows);
    const py::gil_scoped_release unlocked;
    places = string_places(given.column, wanted);
  }
  return array_of<std::int64_t>(std::move(places));
}

py::tuple py_fsst_ranges(const py::object& parameters, std::int64_t column_rows, std::int64_t data_bytes,
                         const RowArray& rows, const py::object& ends) {
  const ColumnView given(parameters, column_rows, data_bytes);
  const ByteView loaded(ends, false);
  StringRanges found;
  {
    const auto wanted = as_span(rows);
    const py::gil_scoped_release unlocked;
    found = string_ranges(given.column, wanted, loaded.bytes());
  }
  return py::make_tuple(array_of<std::int64_t>(std::move(found.starts)),
                        array_of<std::int64_t>(std::move(found.lengths)),
                        array_of<std::uint8_t>(std::move(found.bitmap)), found.nulls);
}

py::tuple py_fsst_decode(const py::bytes& symbols, const py::object& parameters, std::int64_t column_rows,
                         std::int64_t data_bytes, const RowArray& rows, const RowArray& lengths,
                         const py::object& stored) {
  const SymbolTable table = symbols_of(symbols);
  const ColumnView given(parameters, column_rows, data_bytes);
  const ByteView bytes(stored, false);
  Strings found;
  {
    const auto wanted = as_span(rows);
    const auto sizes = as_span(lengths);
    const py::gil_scoped_release unlocked;
    found = decode_strings(table, given.column, wanted, sizes, bytes.bytes());
  }
  const py::tuple all = as_tuple(std::move(found));
  return py::make_tuple(all[0], all[1]);
}

}  // namespace

void bind_fsst(py::module_& module) {
  using py::arg;
  module.def("fsst_symbols", &py_fsst_symbols, arg("symbols"));
  module.def("fsst_train", &py_fsst_train, arg("offsets"), arg("rows"), arg("data"), arg("data_start"));
  module.def("fsst_pack", &py_fsst_pack, arg("symbols"), arg("offsets"), arg("rows"), arg("data"),
             arg("data_start"), arg("validity"));
  module.def("fsst_unpack", &py_fsst_unpack, arg("symbols"), arg("payload"), arg("starts"), arg("parameters"),
             arg("rows"), arg("positions"));
  module.def("check_fsst_column", &py_check_fsst_column, arg("parameters"), arg("column_rows"),
             arg("data_bytes"));
  module.def("fsst_places", &py_fsst_places, arg("parameters"), arg("column_rows"), arg("data_bytes"),
             arg("rows"));
  module.def("fsst_ranges", &py_fsst_ranges, arg("parameters"), arg("column_rows"), arg("data_bytes"),
             arg("rows"), arg("ends"));
  module.def("fsst_decode", &py_fsst_decode, arg("symbols"), arg("parameters"), arg("column_rows"),
             arg("data_bytes"), arg("rows"), arg("lengths"), arg("stored"));
}

}  // namespace bamquery
