#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/bindings/shared_file.hpp"
#include "driver/native/files/open_file.hpp"
#include "storage/native/kinds.hpp"
#include "storage/native/packed/column_binding.hpp"
#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/packing/pack.hpp"
#include "storage/native/packed/packing/sample.hpp"
#include "storage/native/packed/parameters.hpp"
#include "storage/native/packed/parts.hpp"
#include "storage/native/packed/selecting/compare.hpp"
#include "storage/native/packed/selecting/fetch.hpp"
#include "storage/native/packed/selecting/pick.hpp"
#include "storage/native/packed/selecting/take.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::size_t plain_bytes(const Kind& kind, std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  return kind.kind == ValueKind::kBool ? (count + 7) / 8 : count * static_cast<std::size_t>(kind.width);
}

void require_aligned(const Kind& kind, const std::byte* values) {
  require(reinterpret_cast<std::uintptr_t>(values) % static_cast<std::uintptr_t>(kind.width) == 0,
          "values are not aligned");
}

PackedScale scale_of(std::uint64_t divisor, std::uint64_t origin) {
  require(divisor != 0, "the divisor is 0");
  return {divisor, origin};
}

std::optional<ByteView> optional_view(const py::object& object, bool writable) {
  std::optional<ByteView> view;
  if (!object.is_none()) view.emplace(object, writable);
  return view;
}

py::tuple py_pack_vectors(const std::string& kind_name, const py::object& values, const py::object& validity,
                          std::int64_t rows, std::uint64_t divisor, std::uint64_t origin,
                          const py::bytes& exponents) {
  const Kind& kind = find_kind(kind_name);
  const ByteView from(values, false);
  const std::optional<ByteView> valid = optional_view(validity, false);
  const std::string tried = exponents;
  require(rows >= 0 && plain_bytes(kind, rows) <= from.bytes().size(), "values are too few");
  require(!valid || static_cast<std::size_t>(rows + 7) / 8 <= valid->bytes().size(), "bitmap is too small");
  require_aligned(kind, from.bytes().data());
  for (const char exponent : tried) {
    require(static_cast<unsigned char>(exponent) <= kPackedMaxExponent, "an exponent is too large");
  }
  const PackOptions options{kind.kind,
                            scale_of(divisor, origin),
                            {reinterpret_cast<const std::uint8_t*>(tried.data()), tried.size()}};
  PackedVectors packed;
  {
    const py::gil_scoped_release unlocked;
    packed =
        pack_vectors(options, from.bytes().data(),
                     valid ? reinterpret_cast<const std::uint8_t*>(valid->bytes().data()) : nullptr, rows);
  }
  const auto vectors = static_cast<py::ssize_t>(packed.vectors.size());
  py::array_t<std::uint8_t> parameters({vectors, static_cast<py::ssize_t>(sizeof(PackedVector))});
  if (vectors > 0) {
    std::memcpy(parameters.mutable_data(), packed.vectors.data(),
                packed.vectors.size() * sizeof(PackedVector));
  }
  return py::make_tuple(array_of<std::uint8_t>(std::move(packed.payload)), parameters, copy_of(packed.crcs));
}

py::dict py_packing_sample(const std::string& kind_name, const py::object& values, const py::object& validity,
                           std::int64_t rows) {
  const Kind& kind = find_kind(kind_name);
  const ByteView from(values, false);
  const std::optional<ByteView> valid = optional_view(validity, false);
  require(rows >= 0 && plain_bytes(kind, rows) <= from.bytes().size(), "values are too few");
  require(!valid || static_cast<std::size_t>(rows + 7) / 8 <= valid->bytes().size(), "bitmap is too small");
  require_aligned(kind, from.bytes().data());
  PackingSample sample;
  {
    const py::gil_scoped_release unlocked;
    sample =
        sample_packing(kind.kind, from.bytes().data(),
                       valid ? reinterpret_cast<const std::uint8_t*>(valid->bytes().data()) : nullptr, rows);
  }
  py::dict found;
  found["fits"] = sample.fits;
  found["bits"] = sample.bits;
  found["divisor"] = sample.scale.divisor;
  found["origin"] = sample.scale.origin;
  found["exponents"] =
      py::bytes(reinterpret_cast<const char*>(sample.exponents.data()), sample.exponents.size());
  found["distinct"] = sample.distinct;
  return found;
}

// Rows of a column, beyond any.
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

// What a caller says of vectors that lie in one buffer.
struct VectorsView {
  VectorsView(const py::object& payload_, const RowArray& starts_, const py::object& parameters_,
              const RowArray& rows_)
      : payload(payload_, false),
        parameters(parameters_, false),
        starts(as_span(starts_)),
        rows(as_span(rows_)) {
    vectors = span_of<PackedVector>(parameters, "parameters have 16 bytes a vector");
    require(starts.size() == vectors.size() && rows.size() == vectors.size(),
            "starts, parameters and rows are not as many");
    for (const std::int64_t count : rows) {
      require(count >= 0 && count <= kVectorRows, "no vector has so many rows");
      total += count;
    }
  }

  ByteView payload;
  ByteView parameters;
  std::span<const PackedVector> vectors;
  std::span<const std::int64_t> starts;
  std::span<const std::int64_t> rows;
  std::int64_t total = 0;
};

std::int64_t py_unpack_vectors(const std::string& kind_name, const py::object& payload,
                               const RowArray& starts, const py::object& parameters, const RowArray& rows,
                               std::uint64_t divisor, std::uint64_t origin, const py::object& values,
                               const py::object& bitmap) {
  const Kind& kind = find_kind(kind_name);
  const VectorsView view(payload, starts, parameters, rows);
  const ByteView to(values, true);
  const std::optional<ByteView> valid = optional_view(bitmap, true);
  require(plain_bytes(kind, view.total) <= to.bytes().size(), "values do not fit");
  require(!valid || static_cast<std::size_t>(view.total + 7) / 8 <= valid->bytes().size(),
          "the bitmap is too small");
  require_aligned(kind, to.bytes().data());
  const PackedScale scale = scale_of(divisor, origin);
  const py::gil_scoped_release unlocked;
  return unpack_vectors(kind.kind, view.payload.bytes(), view.starts, view.vectors, view.rows, scale,
                        to.writable().data(),
                        valid ? reinterpret_cast<std::uint8_t*>(valid->writable().data()) : nullptr);
}

std::int64_t py_pick_rows(const std::string& kind_name, const py::object& payload, const RowArray& starts,
                          const py::object& parameters, const RowArray& rows, std::uint64_t divisor,
                          std::uint64_t origin, const RowArray& begins, const RowArray& positions,
                          const py::object& values, const py::object& bitmap) {
  const Kind& kind = find_kind(kind_name);
  const VectorsView view(payload, starts, parameters, rows);
  const auto wanted = as_span(positions), first = as_span(begins);
  require(first.size() == view.rows.size(), "each vector has a first row");
  for (const std::int64_t row : first) require(row >= 0 && row <= kMostRows, "no row has such a number");
  const ByteView to(values, true);
  const std::optional<ByteView> valid = optional_view(bitmap, true);
  require(plain_bytes(kind, static_cast<std::int64_t>(wanted.size())) <= to.bytes().size(),
          "values do not fit");
  require(!valid || (wanted.size() + 7) / 8 <= valid->bytes().size(), "the bitmap is too small");
  require_aligned(kind, to.bytes().data());
  const PackedScale scale = scale_of(divisor, origin);
  const py::gil_scoped_release unlocked;
  return pick_rows(kind.kind, view.payload.bytes(), view.starts, view.vectors, view.rows, first, scale,
                   wanted, to.writable().data(),
                   valid ? reinterpret_cast<std::uint8_t*>(valid->writable().data()) : nullptr);
}

py::tuple py_fetch_packed_rows(const SharedFile& file, const std::string& kind_name,
                               const py::object& parameters, std::int64_t column_rows,
                               std::int64_t data_bytes, std::uint64_t divisor, std::uint64_t origin,
                               std::int64_t base, const std::optional<ChecksumArray>& checksums,
                               const RowArray& rows, const py::object& values, const py::object& bitmap) {
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const ByteView to(values, true);
  const ByteView valid(bitmap, true);
  const auto count = static_cast<std::int64_t>(rows.size());
  require(plain_bytes(kind, count) <= to.bytes().size(), "values do not fit");
  require(static_cast<std::size_t>(count + 7) / 8 <= valid.bytes().size(), "the bitmap is too small");
  require_aligned(kind, to.bytes().data());
  const StoredPackedColumn column{kind.kind,
                                  scale_of(divisor, origin),
                                  span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector"),
                                  column_rows,
                                  base,
                                  data_bytes,
                                  checksums ? as_span(*checksums) : std::span<const std::uint32_t>{}};
  FetchedRows found;
  {
    const py::gil_scoped_release unlocked;
    found = fetch_packed_rows(*file.acquire(), column, as_span(rows), to.writable().data(),
                              reinterpret_cast<std::uint8_t*>(valid.writable().data()));
  }
  return py::make_tuple(found.counts.commands, found.counts.blocks, found.mismatch, found.nulls);
}

py::tuple py_packed_parts(const std::string& kind_name, const py::object& payload, const RowArray& starts,
                          const py::object& parameters, const RowArray& rows, std::uint64_t divisor,
                          std::uint64_t origin) {
  const Kind& kind = find_kind(kind_name);
  const VectorsView view(payload, starts, parameters, rows);
  const PackedScale scale = scale_of(divisor, origin);
  PackedParts found;
  {
    const py::gil_scoped_release unlocked;
    found = packed_parts(kind.kind, view.payload.bytes(), view.starts, view.vectors, view.rows, scale);
  }
  const auto vectors = static_cast<py::ssize_t>(found.bounds.size());
  py::array_t<std::uint8_t> bounds({vectors, py::ssize_t{2}, static_cast<py::ssize_t>(kPackedParts)});
  if (vectors > 0) {
    std::memcpy(bounds.mutable_data(), found.bounds.data(), found.bounds.size() * sizeof(PackedPartBounds));
  }
  return py::make_tuple(bounds, copy_of(found.crcs), copy_of(found.escape_crcs));
}

py::tuple py_check_packed_column(const std::string& kind_name, const py::object& parameters,
                                 std::int64_t column_rows, std::int64_t data_bytes,
                                 const RowArray& null_counts) {
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const auto vectors = span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector");
  const auto count = static_cast<py::ssize_t>(vectors.size());
  py::array_t<std::int64_t> starts(count);
  py::array_t<std::int64_t> sizes(count);
  py::array_t<double> referring(count);
  const PackedColumnPayloads payloads{starts.mutable_data(), sizes.mutable_data(), referring.mutable_data()};
  std::optional<PackedColumnFault> fault;
  {
    const py::gil_scoped_release unlocked;
    fault = check_packed_column(kind.kind, vectors, column_rows, data_bytes, as_span(null_counts), payloads);
  }
  py::object found = py::none();
  if (fault) found = py::make_tuple(fault->vector, fault->what);
  return py::make_tuple(starts, sizes, referring, found);
}

py::array_t<std::int64_t> py_packed_places(const std::string& kind_name, const py::object& parameters,
                                           std::int64_t column_rows, std::int64_t data_bytes,
                                           const RowArray& rows) {
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const auto vectors = span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector");
  py::array_t<std::int64_t> places(rows.size());
  std::int64_t* out = places.mutable_data();
  const py::gil_scoped_release unlocked;
  PackedRows(kind.kind, vectors, column_rows, data_bytes).places(as_span(rows), out);
  return places;
}

py::tuple py_count_packed_blocks(const std::string& kind_name, const py::object& parameters,
                                 std::int64_t column_rows, std::int64_t data_bytes, const RowArray& rows,
                                 std::int64_t base, std::int64_t block_size) {
  check_block_size(block_size);
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const auto vectors = span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector");
  PackedRows::Blocks found;
  {
    const py::gil_scoped_release unlocked;
    found =
        PackedRows(kind.kind, vectors, column_rows, data_bytes).count_blocks(as_span(rows), base, block_size);
  }
  return py::make_tuple(found.runs, found.blocks, found.rest_runs, found.rest_blocks);
}

py::tuple py_unpack_rows(const std::string& kind_name, const py::object& parameters, std::int64_t column_rows,
                         std::int64_t data_bytes, std::uint64_t divisor, std::uint64_t origin,
                         const RowArray& rows, const py::object& words, const py::object& values,
                         const py::object& bitmap) {
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const ByteView loaded(words, false);
  const ByteView to(values, true);
  const ByteView valid(bitmap, true);
  const auto vectors = span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector");
  const auto words_of = span_of<std::uint64_t>(loaded, "words have 8 bytes");
  const auto rows_of = as_span(rows);
  const auto count = static_cast<std::int64_t>(rows_of.size());
  require(words_of.size() == rows_of.size(), "rows and words are not as many");
  require(plain_bytes(kind, count) <= to.bytes().size(), "values do not fit");
  require((rows_of.size() + 7) / 8 <= valid.bytes().size(), "the bitmap is too small");
  const PackedScale scale = scale_of(divisor, origin);
  PackedRows::Rest rest;
  {
    const py::gil_scoped_release unlocked;
    rest = PackedRows(kind.kind, vectors, column_rows, data_bytes)
               .unpack(rows_of, words_of, scale, to.writable().data(),
                       reinterpret_cast<std::uint8_t*>(valid.writable().data()));
  }
  return py::make_tuple(copy_of(rest.positions), copy_of(rest.places));
}

void py_unpack_rest(const std::string& kind_name, const py::object& parameters, std::int64_t column_rows,
                    std::int64_t data_bytes, std::uint64_t divisor, std::uint64_t origin,
                    const RowArray& rows, const RowArray& positions, const py::object& words,
                    const py::object& values, const py::object& bitmap) {
  const Kind& kind = find_kind(kind_name);
  const ByteView of_vectors(parameters, false);
  const ByteView loaded(words, false);
  const ByteView to(values, true);
  const ByteView valid(bitmap, true);
  const auto vectors = span_of<PackedVector>(of_vectors, "parameters have 16 bytes a vector");
  const auto words_of = span_of<std::uint64_t>(loaded, "words have 8 bytes");
  const auto rows_of = as_span(rows);
  const auto positions_of = as_span(positions);
  require(words_of.size() == positions_of.size(), "positions and words are not as many");
  require(plain_bytes(kind, static_cast<std::int64_t>(rows_of.size())) <= to.bytes().size(),
          "values do not fit");
  require((rows_of.size() + 7) / 8 <= valid.bytes().size(), "the bitmap is too small");
  const py::gil_scoped_release unlocked;
  PackedRows(kind.kind, vectors, column_rows, data_bytes)
      .unpack_rest(rows_of, positions_of, words_of, {divisor, origin}, to.writable().data(),
                   reinterpret_cast<std::uint8_t*>(valid.writable().data()));
}

std::int64_t py_compare_packed(const std::string& kind_name, const py::object& payload,
                               const RowArray& starts, const py::object& parameters, const RowArray& rows,
                               std::uint64_t divisor, std::uint64_t origin, const RowArray& terms,
                               const py::object& bounds, bool nulls_pass, const py::object& mask) {
  const Kind& kind = find_kind(kind_name);
  const VectorsView view(payload, starts, parameters, rows);
  const ByteView keys(bounds, false);
  const ByteView to(mask, true);
  const auto conditions =
      key_terms(kind.kind, as_span(terms), span_of<std::uint64_t>(keys, "bounds have 8 bytes"));
  const PackedScale scale = scale_of(divisor, origin);
  require(static_cast<std::size_t>(view.total + 7) / 8 <= to.bytes().size(), "the mask is too small");
  const py::gil_scoped_release unlocked;
  PackedPredicate predicate(kind.kind, scale, conditions, nulls_pass);
  return compare_packed(predicate, view.payload.bytes(), view.starts, view.vectors, view.rows,
                        reinterpret_cast<std::uint8_t*>(to.writable().data()));
}

std::vector<std::string> py_simd_levels() {
  std::vector<std::string> names;
  for (const SimdLevel level : simd_levels()) names.emplace_back(simd_level_name(level));
  return names;
}

void py_use_simd_level(const std::string& name) {
  for (const SimdLevel level : simd_levels()) {
    if (name == simd_level_name(level)) return use_simd_level(level);
  }
  throw py::value_error("this processor has no " + name);
}

}  // namespace

void bind_packed(py::module_& module) {
  using py::arg;
  module.def("pack_vectors", &py_pack_vectors, arg("kind"), arg("values"), arg("validity"), arg("rows"),
             arg("divisor"), arg("origin"), arg("exponents"));
  module.def("packing_sample", &py_packing_sample, arg("kind"), arg("values"), arg("validity"), arg("rows"));
  module.def("unpack_vectors", &py_unpack_vectors, arg("kind"), arg("payload"), arg("starts"),
             arg("parameters"), arg("rows"), arg("divisor"), arg("origin"), arg("values"), arg("bitmap"));
  module.def("pick_rows", &py_pick_rows, arg("kind"), arg("payload"), arg("starts"), arg("parameters"),
             arg("rows"), arg("divisor"), arg("origin"), arg("begins"), arg("positions"), arg("values"),
             arg("bitmap"));
  module.def("compare_packed", &py_compare_packed, arg("kind"), arg("payload"), arg("starts"),
             arg("parameters"), arg("rows"), arg("divisor"), arg("origin"), arg("terms"), arg("bounds"),
             arg("nulls_pass"), arg("mask"));
  module.def("fetch_packed_rows", &py_fetch_packed_rows, arg("file"), arg("kind"), arg("parameters"),
             arg("column_rows"), arg("data_bytes"), arg("divisor"), arg("origin"), arg("base"),
             arg("checksums"), arg("rows"), arg("values"), arg("bitmap"));
  module.def("packed_parts", &py_packed_parts, arg("kind"), arg("payload"), arg("starts"), arg("parameters"),
             arg("rows"), arg("divisor"), arg("origin"));
  module.def("check_packed_column", &py_check_packed_column, arg("kind"), arg("parameters"),
             arg("column_rows"), arg("data_bytes"), arg("null_counts"));
  module.def("packed_places", &py_packed_places, arg("kind"), arg("parameters"), arg("column_rows"),
             arg("data_bytes"), arg("rows"));
  module.def("count_packed_blocks", &py_count_packed_blocks, arg("kind"), arg("parameters"),
             arg("column_rows"), arg("data_bytes"), arg("rows"), arg("base"), arg("block_size"));
  module.def("unpack_rows", &py_unpack_rows, arg("kind"), arg("parameters"), arg("column_rows"),
             arg("data_bytes"), arg("divisor"), arg("origin"), arg("rows"), arg("words"), arg("values"),
             arg("bitmap"));
  module.def("unpack_rest", &py_unpack_rest, arg("kind"), arg("parameters"), arg("column_rows"),
             arg("data_bytes"), arg("divisor"), arg("origin"), arg("rows"), arg("positions"), arg("words"),
             arg("values"), arg("bitmap"));
  module.def("simd_levels", &py_simd_levels);
  module.def("use_simd_level", &py_use_simd_level, arg("name"));
}

}  // namespace bamquery
