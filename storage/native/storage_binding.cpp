#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "storage/native/column_copy.hpp"
#include "storage/native/hit_pyramid.hpp"
#include "storage/native/kinds.hpp"
#include "storage/native/rows_by_vector.hpp"
#include "storage/native/statistics.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::int64_t size_of(const ByteView& view) { return static_cast<std::int64_t>(view.bytes().size()); }

// An optional bitmap; None means that all bits are set.
class BitmapView {
 public:
  BitmapView(const py::object& object, std::int64_t bit, std::int64_t count) : offset_(bit) {
    if (object.is_none()) return;
    view_.emplace(object, false);
    require(bit >= 0 && count >= 0 && bit + count <= 8 * size_of(*view_), "bitmap is too small");
  }
  const std::uint8_t* data() const {
    return view_ ? reinterpret_cast<const std::uint8_t*>(view_->bytes().data()) : nullptr;
  }
  Bits bits() const { return {data(), offset_}; }

 private:
  std::optional<ByteView> view_;
  std::int64_t offset_;
};

std::int64_t py_copy_bits(const py::object& source, std::int64_t source_bit, std::int64_t count,
                          const py::object& target, std::int64_t target_bit) {
  const BitmapView from(source, source_bit, count);
  const ByteView to(target, true);
  require(count >= 0 && target_bit >= 0 && target_bit + count <= 8 * size_of(to), "target is too small");
  const py::gil_scoped_release unlocked;
  return copy_bits(from.bits(), count, reinterpret_cast<std::uint8_t*>(to.writable().data()), target_bit);
}

py::array_t<std::int64_t> py_set_bits(const py::object& bits, std::int64_t count) {
  require(count >= 0, "a count is negative");
  const BitmapView from(bits, 0, count);
  py::array_t<std::int64_t> places(static_cast<py::ssize_t>(count_bits(from.bits(), count)));
  std::int64_t* out = places.mutable_data();
  const py::gil_scoped_release unlocked;
  set_bits(from.bits(), count, out);
  return places;
}

py::array_t<std::int64_t> py_set_among(const py::object& bits, const RowArray& places) {
  const ByteView from(bits, false);
  const auto asked = as_span(places);
  for (const std::int64_t place : asked) require(place >= 0 && place < 8 * size_of(from), "no such bit");
  std::vector<std::int64_t> found(asked.size() + 1);
  std::int64_t count;
  {
    const py::gil_scoped_release unlocked;
    const Bits of{reinterpret_cast<const std::uint8_t*>(from.bytes().data()), 0};
    count = set_among(of, asked.data(), static_cast<std::int64_t>(asked.size()), found.data());
  }
  return py::array_t<std::int64_t>(static_cast<py::ssize_t>(count), found.data());
}

void py_copy_values(const py::object& source, std::int64_t source_row, std::int64_t rows, std::int64_t width,
                    const py::object& validity, std::int64_t validity_bit, const py::object& target,
                    std::int64_t target_row) {
  const ByteView from(source, false);
  const ByteView to(target, true);
  const BitmapView valid(validity, validity_bit, rows);
  require(width == 1 || width == 2 || width == 4 || width == 8 || width == 16, "no such width");
  require(rows >= 0 && source_row >= 0 && (source_row + rows) * width <= size_of(from),
          "source is too small");
  require(target_row >= 0 && (target_row + rows) * width <= size_of(to), "target is too small");
  const py::gil_scoped_release unlocked;
  copy_values(from.bytes().data() + source_row * width, rows, width, valid.bits(),
              to.writable().data() + target_row * width);
}

py::tuple py_vector_statistics(const std::string& kind_name, const py::object& values,
                               const py::object& validity, std::int64_t rows) {
  const Kind& kind = find_kind(kind_name);
  const ByteView from(values, false);
  const BitmapView valid(validity, 0, rows);
  const std::int64_t bytes = kind.kind == ValueKind::kBool ? (rows + 7) / 8 : rows * kind.width;
  require(rows >= 0 && bytes <= size_of(from), "values are too few");
  require(
      reinterpret_cast<std::uintptr_t>(from.bytes().data()) % static_cast<std::uintptr_t>(kind.width) == 0,
      "values are not aligned");
  const std::int64_t vectors = (rows + kVectorRows - 1) / kVectorRows;
  py::array_t<std::uint8_t> minima(vectors * kind.width), maxima(vectors * kind.width);
  py::array_t<std::uint16_t> null_counts(vectors), nan_counts(vectors);
  py::array_t<std::uint32_t> values_crcs(vectors);
  const VectorStatistics out{reinterpret_cast<std::byte*>(minima.mutable_data()),
                             reinterpret_cast<std::byte*>(maxima.mutable_data()), null_counts.mutable_data(),
                             nan_counts.mutable_data(), values_crcs.mutable_data()};
  {
    const py::gil_scoped_release unlocked;
    vector_statistics(kind.kind, from.bytes().data(), valid.data(), rows, out);
  }
  return py::make_tuple(minima, maxima, null_counts, nan_counts, values_crcs);
}

// The rows + 1 offsets of `rows` strings from `first_row`, inside a buffer of int64.
std::span<const std::int64_t> offsets_of(const ByteView& view, std::int64_t first_row, std::int64_t rows) {
  require(first_row >= 0 && rows >= 0 && (first_row + rows + 1) * 8 <= size_of(view), "offsets are too few");
  const auto* data = view.bytes().data();
  require(reinterpret_cast<std::uintptr_t>(data) % alignof(std::int64_t) == 0, "offsets are not aligned");
  return {reinterpret_cast<const std::int64_t*>(data) + first_row, static_cast<std::size_t>(rows) + 1};
}

py::array_t<std::int64_t> py_string_ends(const py::object& offsets, std::int64_t first_row, std::int64_t rows,
                                         std::int64_t data_size, const py::object& validity,
                                         std::int64_t validity_bit, std::int64_t start) {
  const ByteView view(offsets, false);
  const BitmapView valid(validity, validity_bit, rows);
  const auto from = offsets_of(view, first_row, rows);
  py::array_t<std::int64_t> ends(rows);
  std::int64_t* out = ends.mutable_data();
  bool ascending;
  {
    const py::gil_scoped_release unlocked;
    ascending = string_ends(from, data_size, valid.bits(), start, out);
  }
  require(ascending, "string offsets are not ascending within their data");
  return ends;
}

void py_copy_strings(const py::object& offsets, std::int64_t first_row, std::int64_t rows,
                     const py::object& data, const py::object& validity, std::int64_t validity_bit,
                     const py::object& target) {
  const ByteView view(offsets, false);
  const ByteView source(data, false);
  const ByteView to(target, true);
  const BitmapView valid(validity, validity_bit, rows);
  const auto from = offsets_of(view, first_row, rows);
  bool fits;
  {
    const py::gil_scoped_release unlocked;
    std::int64_t needed = 0;
    fits = from.front() >= 0 && from.back() <= size_of(source);
    for (std::int64_t row = 0; row < rows && fits; ++row) {
      const auto at = static_cast<std::size_t>(row);
      fits = from[at] <= from[at + 1];
      if (valid.bits()[row]) needed += from[at + 1] - from[at];
    }
    fits = fits && needed <= size_of(to);
    if (fits) copy_strings(from, source.bytes().data(), valid.bits(), to.writable().data());
  }
  require(fits, "strings do not fit");
}

py::tuple py_string_statistics(const py::object& offsets, std::int64_t rows, const py::object& data,
                               std::int64_t data_start, const py::object& validity, bool utf8) {
  const ByteView view(offsets, false);
  const ByteView bytes(data, false);
  const BitmapView valid(validity, 0, rows);
  const auto from = offsets_of(view, 0, rows);
  require(from.front() >= data_start && from.back() - data_start <= size_of(bytes), "data is too small");
  const std::int64_t vectors = (rows + kVectorRows - 1) / kVectorRows;
  constexpr auto kCell = static_cast<std::int64_t>(kPrefixBytes);
  py::array_t<std::uint8_t> minima(vectors * kCell), maxima(vectors * kCell);
  py::array_t<std::uint8_t> minimum_lengths(vectors), maximum_lengths(vectors);
  py::array_t<std::uint16_t> null_counts(vectors);
  py::array_t<std::uint32_t> values_crcs(vectors), offsets_crcs(vectors);
  std::int64_t ill_formed;
  const StringStatistics out{reinterpret_cast<std::byte*>(minima.mutable_data()),
                             minimum_lengths.mutable_data(),
                             reinterpret_cast<std::byte*>(maxima.mutable_data()),
                             maximum_lengths.mutable_data(),
                             null_counts.mutable_data(),
                             values_crcs.mutable_data(),
                             offsets_crcs.mutable_data()};
  {
    const py::gil_scoped_release unlocked;
    ill_formed = string_statistics(from, bytes.bytes().data(), data_start, valid.data(), utf8, out);
  }
  return py::make_tuple(minima, minimum_lengths, maxima, maximum_lengths, null_counts, values_crcs,
                        offsets_crcs, ill_formed);
}

py::array_t<std::uint32_t> py_strided_crcs(const py::object& data, std::int64_t stride) {
  const ByteView view(data, false);
  require(stride > 0, "stride must be positive");
  py::array_t<std::uint32_t> crcs((size_of(view) + stride - 1) / stride);
  std::uint32_t* out = crcs.mutable_data();
  const py::gil_scoped_release unlocked;
  strided_crcs(view.bytes(), static_cast<std::size_t>(stride), 0, out);
  return crcs;
}

py::tuple py_count_hit_pyramid(const RowArray& rows) {
  const std::span ascending(rows.data(), static_cast<std::size_t>(rows.size()));
  HitPyramid found;
  {
    const py::gil_scoped_release unlocked;
    found = count_hit_pyramid(ascending);
  }
  const auto array = [](const auto& counts) {
    return py::array_t<std::int64_t>(static_cast<py::ssize_t>(counts.size()), counts.data());
  };
  return py::make_tuple(array(found.groups), array(found.runs));
}

py::tuple py_rows_by_vector(const RowArray& rows) {
  VectorsOfRows found;
  {
    const py::gil_scoped_release unlocked;
    found = rows_by_vector(as_span(rows));
  }
  return py::make_tuple(array_of<std::int64_t>(std::move(found.vectors)),
                        array_of<std::int64_t>(std::move(found.counts)));
}

py::tuple py_join_offsets(const py::object& stored, const RowArray& counts, std::int64_t data_size,
                          const py::object& joined) {
  const ByteView view(stored, false);
  const ByteView to(joined, true);
  const auto rows_of = as_span(counts);
  std::int64_t rows = 0;
  for (const std::int64_t count : rows_of) {
    require(count >= 0, "negative count");
    rows += count;
  }
  const auto vectors = static_cast<std::int64_t>(rows_of.size());
  require((rows + vectors) * 8 == size_of(view) && (rows + 1) * 8 <= size_of(to), "offsets do not fit");
  py::array_t<std::int64_t> starts(vectors), lengths(vectors);
  std::int64_t* starts_out = starts.mutable_data();
  std::int64_t* lengths_out = lengths.mutable_data();
  std::int64_t bad;
  {
    const py::gil_scoped_release unlocked;
    bad = join_offsets({reinterpret_cast<const std::int64_t*>(view.bytes().data()), view.bytes().size() / 8},
                       rows_of, data_size, reinterpret_cast<std::int64_t*>(to.writable().data()), starts_out,
                       lengths_out);
  }
  return py::make_tuple(bad, starts, lengths);
}

}  // namespace

void bind_storage(py::module_& module) {
  using py::arg;
  module.def("copy_bits", &py_copy_bits, arg("source"), arg("source_bit"), arg("count"), arg("target"),
             arg("target_bit"));
  module.def("set_bits", &py_set_bits, arg("bits"), arg("count"));
  module.def("set_among", &py_set_among, arg("bits"), arg("places"));
  module.def("copy_values", &py_copy_values, arg("source"), arg("source_row"), arg("rows"), arg("width"),
             arg("validity"), arg("validity_bit"), arg("target"), arg("target_row"));
  module.def("vector_statistics", &py_vector_statistics, arg("kind"), arg("values"), arg("validity"),
             arg("rows"));
  module.def("string_ends", &py_string_ends, arg("offsets"), arg("first_row"), arg("rows"), arg("data_size"),
             arg("validity"), arg("validity_bit"), arg("start"));
  module.def("copy_strings", &py_copy_strings, arg("offsets"), arg("first_row"), arg("rows"), arg("data"),
             arg("validity"), arg("validity_bit"), arg("target"));
  module.def("string_statistics", &py_string_statistics, arg("offsets"), arg("rows"), arg("data"),
             arg("data_start"), arg("validity"), arg("utf8"));
  module.def("strided_crcs", &py_strided_crcs, arg("data"), arg("stride"));
  module.def("count_hit_pyramid", &py_count_hit_pyramid, arg("rows"));
  module.def("rows_by_vector", &py_rows_by_vector, arg("rows"));
  module.def("join_offsets", &py_join_offsets, arg("stored"), arg("counts"), arg("data_size"), arg("joined"));
}

}  // namespace bamquery
