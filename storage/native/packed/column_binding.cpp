#include "storage/native/packed/column_binding.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <list>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "storage/native/kinds.hpp"
#include "storage/native/packed/selecting/read_columns.hpp"

namespace py = pybind11;

namespace bamquery {

HeldPackedColumn::HeldPackedColumn(const std::string& kind, const py::object& parameters, std::int64_t rows,
                                   std::int64_t bytes, std::uint64_t divisor, std::uint64_t origin,
                                   std::int64_t base, const ChecksumArray& checksums)
    : parameters_(parameters, false), checksums_(checksums) {
  require(rows >= 0 && bytes >= 0 && base >= 0, "no such column");
  require(divisor != 0, "the divisor is 0");
  column_ = {find_kind(kind).kind,
             {divisor, origin},
             span_of<PackedVector>(parameters_, "parameters have 16 bytes a vector"),
             rows,
             base,
             bytes,
             as_span(checksums_)};
  require((rows + kVectorRows - 1) / kVectorRows == static_cast<std::int64_t>(column_.vectors.size()),
          "parameters are not those of so many rows");
  require(column_.checksums.size() == column_.vectors.size(), "as many checksums as vectors");
}

StoredPackedColumn HeldPackedColumn::column(bool verified) const {
  StoredPackedColumn found = column_;
  if (!verified) found.checksums = {};
  return found;
}

std::vector<KeyTerm> key_terms(ValueKind kind, std::span<const std::int64_t> terms,
                               std::span<const std::uint64_t> bounds) {
  const std::size_t words = kind == ValueKind::kInt128 ? 2 : 1;
  const auto key = [&](std::size_t at) {
    return words == 1 ? WideOrderKey{bounds[at]} : WideOrderKey{bounds[at + 1]} << 64 | bounds[at];
  };
  require(terms.size() % 2 == 0, "terms have two numbers each");
  std::vector<KeyTerm> found;
  std::size_t next = 0;
  for (std::size_t term = 0; term < terms.size(); term += 2) {
    KeyTerm made{{}, terms[term + 1] != 0};
    for (std::int64_t i = 0; i < terms[term]; ++i, next += 2 * words) {
      require(next + 2 * words <= bounds.size(), "bounds are too few");
      made.intervals.push_back({key(next), key(next + words)});
    }
    found.push_back(std::move(made));
  }
  return found;
}

namespace {

py::list py_read_columns(const SharedFile& file, const py::sequence& asked, bool verify) {
  std::vector<ByteView> views;
  std::list<RowArray> arrays;
  std::vector<ColumnRequest> requests;
  views.reserve(2 * asked.size());
  for (const py::handle one : asked) {
    const auto [held, wanted, places, values, bitmap, lengths] = py::cast<
        std::tuple<const HeldPackedColumn*, int, RowArray, py::object, py::object, std::optional<RowArray>>>(
        one);
    require(wanted >= 0 && wanted <= 2, "columns are wanted in three ways");
    ColumnRequest request{held->column(verify),
                          static_cast<Wanted>(wanted),
                          as_span(arrays.emplace_back(places)),
                          views.emplace_back(values, true).writable(),
                          nullptr,
                          {}};
    const std::int64_t rows = rows_of(request);
    if (request.wanted != Wanted::kPayload) {
      const auto bits = views.emplace_back(bitmap, true).writable();
      require(value_bytes(request.column.kind, rows) <= request.values.size(), "values do not fit");
      require((static_cast<std::size_t>(rows) + 7) / 8 <= bits.size(), "the bitmap is too small");
      const auto alignment = std::max<std::uintptr_t>(value_bytes(request.column.kind, 1), 1);
      require(reinterpret_cast<std::uintptr_t>(request.values.data()) % alignment == 0,
              "values are not aligned");
      request.bitmap = reinterpret_cast<std::uint8_t*>(bits.data());
      if (lengths) {
        require(value_bytes(request.column.kind, 1) <= 4 && request.column.kind != ValueKind::kBool,
                "codes have 32 bits at most");
        request.lengths = as_span(arrays.emplace_back(*lengths));
        request.coded = true;
        request.are_alike =
            std::ranges::adjacent_find(request.lengths, std::not_equal_to{}) == request.lengths.end();
      }
    }
    requests.push_back(request);
  }
  std::vector<ReadColumn> read;
  {
    const py::gil_scoped_release unlocked;
    read = read_columns(*file.acquire(), requests);
  }
  py::list found;
  for (const ReadColumn& column : read) {
    found.append(py::make_tuple(column.counts.commands, column.counts.blocks, column.mismatch, column.nulls,
                                column.string_bytes));
  }
  return found;
}

}  // namespace

void bind_packed_columns(py::module_& module) {
  using py::arg;
  py::class_<HeldPackedColumn>(module, "PackedColumn")
      .def(py::init<const std::string&, const py::object&, std::int64_t, std::int64_t, std::uint64_t,
                    std::uint64_t, std::int64_t, const ChecksumArray&>(),
           arg("kind"), arg("parameters"), arg("column_rows"), arg("data_bytes"), arg("divisor"),
           arg("origin"), arg("base"), arg("checksums"));
  module.def("read_packed_columns", &py_read_columns, arg("file"), arg("requests"), arg("verify"));
}

}  // namespace bamquery
