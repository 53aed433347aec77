#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "engine/native/keys/group_sums.hpp"
#include "engine/native/keys/grouping.hpp"
#include "engine/native/keys/key_column.hpp"
#include "engine/native/keys/key_table.hpp"
#include "engine/native/keys/number_set.hpp"
#include "engine/native/keys/number_summary.hpp"
#include "engine/native/keys/partition.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

using Numbers = py::array;

std::byte* bytes_of(py::array& array) { return static_cast<std::byte*>(array.mutable_data()); }

// A column out of an array, and of the bits that say which of its values are there: they stay while it does.
class HeldColumn {
 public:
  HeldColumn(const py::array& values, const py::object& validity, std::int64_t first_bit) : values_(values) {
    const py::dtype type = values.dtype();
    const bool is_pair = values.ndim() == 2 && values.shape(1) == 2 && type.itemsize() == 8;
    require(values.ndim() == 1 || is_pair, "a key column has one value a row");
    require((values.flags() & py::array::c_style) != 0 || values.size() == 0, "values have gaps");
    require(type.kind() == 'i' || type.kind() == 'u' || type.kind() == 'b', "keys are whole numbers");
    require(type.byteorder() == '=' || type.byteorder() == '|', "keys are not in this machine's order");
    view_.data = static_cast<const std::byte*>(values.data());
    view_.width = is_pair ? 16 : static_cast<int>(type.itemsize());
    view_.is_signed = type.kind() == 'i';
    view_.rows = values.shape(0);
    if (validity.is_none()) return;
    bits_.emplace(validity, false);
    require(first_bit >= 0 && view_.rows <= 8 * static_cast<std::int64_t>(bits_->bytes().size()) - first_bit,
            "bitmap is too small");
    view_.valid = {reinterpret_cast<const std::uint8_t*>(bits_->bytes().data()), first_bit};
  }

  const KeyColumn& view() const { return view_; }
  py::dtype type() const { return values_.dtype(); }

 private:
  py::array values_;
  std::optional<ByteView> bits_;
  KeyColumn view_;
};

// A column of (values, validity, its first bit).
HeldColumn hold_column(const py::handle& column) {
  const auto parts = py::reinterpret_borrow<py::sequence>(column);
  require(py::len(parts) == 3, "a key column is values, validity and its first bit");
  return {py::cast<py::array>(parts[0]), py::object(parts[1]), py::cast<std::int64_t>(parts[2])};
}

// Such columns, all as long.
class HeldColumns {
 public:
  explicit HeldColumns(const py::sequence& columns) {
    require(py::len(columns) > 0, "there are no key columns");
    held_.reserve(py::len(columns));
    for (const py::handle& column : columns) {
      held_.push_back(hold_column(column));
      views_.push_back(held_.back().view());
      require(views_.back().rows == views_.front().rows, "key columns are not equally long");
    }
  }

  std::span<const KeyColumn> views() const { return views_; }
  std::int64_t rows() const { return views_.front().rows; }

 private:
  std::vector<HeldColumn> held_;
  std::vector<KeyColumn> views_;
};

py::tuple py_group_rows(const py::sequence& keys) {
  const HeldColumns columns(keys);
  require(columns.rows() <= kMostGroupedRows, "too many rows for 32 bits");
  py::array_t<std::int32_t> codes(columns.rows());
  std::int32_t* out = codes.mutable_data();
  std::vector<std::int64_t> leaders;
  {
    const py::gil_scoped_release unlocked;
    leaders = group_rows(columns.views(), columns.rows(), out);
  }
  return py::make_tuple(codes, array_of<std::int64_t>(std::move(leaders)));
}

py::object py_key_table(const py::sequence& keys, const std::vector<bool>& nulls_equal,
                        std::int64_t threads) {
  const HeldColumns columns(keys);
  require(nulls_equal.size() == columns.views().size(), "each key says whether nulls are equal");
  require(columns.rows() < KeyTable::kMostRows, "too many rows for 32 bits");
  std::optional<KeyTable> table;
  {
    const py::gil_scoped_release unlocked;
    table = KeyTable::make(columns.views(), columns.rows(), nulls_equal, threads);
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

py::tuple py_summarize_numbers(const py::sequence& given, bool wants_distinct, std::int64_t threads) {
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
    summary = summarize_numbers(columns, wants_distinct, threads);
  }
  const py::dtype type = held.front().type();
  std::vector<std::uint64_t> bounds;
  if (summary.count > 0) bounds = {summary.low, summary.high};
  py::object distinct = py::none();
  if (summary.distinct) distinct = as_numbers(std::move(*summary.distinct), type);
  return py::make_tuple(summary.count, as_numbers(std::move(bounds), type), distinct);
}

// The codes of rows, which stay while it does; None where all rows are of one group.
class HeldGroups {
 public:
  HeldGroups(const py::object& codes, std::int64_t rows, std::int64_t groups) {
    require(groups >= 0 && groups <= PY_SSIZE_T_MAX / 128, "no such number of groups");
    view_.rows = rows;
    view_.groups = groups;
    if (codes.is_none()) {
      require(groups == 1, "rows of several groups have codes");
      return;
    }
    codes_ = py::cast<py::array>(codes);
    const py::dtype type = codes_.dtype();
    require(codes_.ndim() == 1 && codes_.shape(0) == rows, "there is not one code a row");
    require((codes_.flags() & py::array::c_style) != 0, "codes have gaps");
    require(type.kind() == 'i' && (type.itemsize() == 4 || type.itemsize() == 8) && type.byteorder() == '=',
            "codes are integers of 32 or 64 bits");
    view_.data = static_cast<const std::byte*>(static_cast<const py::array&>(codes_).data());
    view_.width = static_cast<int>(type.itemsize());
  }

  const RowGroups& view() const { return view_; }
  auto size() const { return static_cast<py::ssize_t>(view_.groups); }

 private:
  py::array codes_;
  RowGroups view_;
};

constexpr const char* kOutside = "a row is of no group";

// An array of zeros, one a group.
template <typename T>
py::array_t<T> zeros_of(const HeldGroups& groups) {
  py::array_t<T> made(groups.size());
  std::fill_n(made.mutable_data(), groups.size(), T{0});
  return made;
}

py::array_t<std::int64_t> py_count_groups(const py::object& codes, std::int64_t rows, std::int64_t groups,
                                          const py::object& validity, std::int64_t first_bit) {
  require(rows >= 0, "there are no such rows");
  const HeldGroups held(codes, rows, groups);
  std::optional<ByteView> bits;
  Bits valid;
  if (!validity.is_none()) {
    bits.emplace(validity, false);
    require(first_bit >= 0 && rows <= 8 * static_cast<std::int64_t>(bits->bytes().size()) - first_bit,
            "bitmap is too small");
    valid = {reinterpret_cast<const std::uint8_t*>(bits->bytes().data()), first_bit};
  }
  auto counts = zeros_of<std::int64_t>(held);
  std::int64_t* out = counts.mutable_data();
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = count_groups(held.view(), valid, out);
  }
  require(is_right, kOutside);
  return counts;
}

template <typename T>
using Plain = py::array_t<T, py::array::c_style>;

py::array_t<std::int64_t> py_sum_whole(const py::object& codes, const Plain<std::int64_t>& values,
                                       std::int64_t groups) {
  const HeldGroups held(codes, values.size(), groups);
  auto sums = zeros_of<std::int64_t>(held);
  std::int64_t* out = sums.mutable_data();
  const std::int64_t* from = values.data();
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = sum_whole(held.view(), from, out);
  }
  require(is_right, kOutside);
  return sums;
}

py::object py_sum_checked(const py::object& codes, const Plain<std::int64_t>& values, std::int64_t groups) {
  const HeldGroups held(codes, values.size(), groups);
  auto sums = zeros_of<std::int64_t>(held);
  std::int64_t* out = sums.mutable_data();
  const std::int64_t* from = values.data();
  bool is_right, fits = false;
  {
    const py::gil_scoped_release unlocked;
    is_right = sum_checked(held.view(), from, out, fits);
  }
  require(is_right, kOutside);
  return fits ? py::object(std::move(sums)) : py::none();
}

py::object py_narrow_sums(const Plain<std::int64_t>& words) {
  require(words.ndim() == 2 && words.shape(1) == 2, "numbers are of two words");
  const std::int64_t count = words.shape(0);
  py::array_t<std::int64_t> sums(count);
  std::int64_t* out = sums.mutable_data();
  const std::int64_t* from = words.data();
  bool fits;
  {
    const py::gil_scoped_release unlocked;
    fits = narrow_sums(from, count, out);
  }
  return fits ? py::object(std::move(sums)) : py::none();
}

py::array_t<double> py_sum_doubles(const py::object& codes, const Plain<double>& values,
                                   std::int64_t groups) {
  const HeldGroups held(codes, values.size(), groups);
  auto sums = zeros_of<double>(held);
  double* out = sums.mutable_data();
  const double* from = values.data();
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = sum_doubles(held.view(), from, out);
  }
  require(is_right, kOutside);
  return sums;
}

py::tuple py_sum_pairs(const py::object& codes, const Plain<double>& y, const Plain<double>& x,
                       std::int64_t groups) {
  require(y.size() == x.size(), "pairs are not complete");
  const HeldGroups held(codes, y.size(), groups);
  auto counts = zeros_of<std::int64_t>(held);
  std::array<py::array_t<double>, 5> sums{zeros_of<double>(held), zeros_of<double>(held),
                                          zeros_of<double>(held), zeros_of<double>(held),
                                          zeros_of<double>(held)};
  const PairMoments found{counts.mutable_data(),  sums[0].mutable_data(), sums[1].mutable_data(),
                          sums[2].mutable_data(), sums[3].mutable_data(), sums[4].mutable_data()};
  const double *from_y = y.data(), *from_x = x.data();
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = sum_pairs(held.view(), from_y, from_x, found);
  }
  require(is_right, kOutside);
  return py::make_tuple(counts, sums[0], sums[1], sums[2], sums[3], sums[4]);
}

constexpr std::size_t kMostLimbs = 5;

// Arrays of limbs, one a group each, and where they are.
struct LimbArrays {
  LimbArrays(const HeldGroups& groups, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      arrays.push_back(zeros_of<std::int64_t>(groups));
      data.push_back(arrays.back().mutable_data());
    }
  }

  std::vector<py::array_t<std::int64_t>> arrays;
  std::vector<std::int64_t*> data;
};

py::tuple py_sum_limbs(const py::object& codes, const py::array& values, const py::object& validity,
                       std::int64_t first_bit, std::int64_t groups, std::size_t count) {
  const HeldColumn column(values, validity, first_bit);
  const HeldGroups held(codes, column.view().rows, groups);
  const auto least = static_cast<std::size_t>(limbs_of(column.view().width));
  require(count == 0 || (least <= count && count <= kMostLimbs), "no such number of limbs");
  LimbArrays limbs(held, count == 0 ? least : count);
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = sum_limbs(held.view(), column.view(), limbs.data);
  }
  require(is_right, kOutside);
  return py::tuple(py::cast(limbs.arrays));
}

py::tuple py_merge_limbs(const py::object& codes, const std::vector<Plain<std::int64_t>>& values,
                         std::int64_t groups) {
  require(!values.empty(), "there are no limbs");
  const HeldGroups held(codes, values.front().size(), groups);
  std::vector<const std::int64_t*> from;
  for (const auto& limb : values) {
    require(limb.ndim() == 1 && limb.size() == values.front().size(), "limbs are not equally long");
    from.push_back(limb.data());
  }
  LimbArrays limbs(held, values.size());
  bool is_right;
  {
    const py::gil_scoped_release unlocked;
    is_right = merge_limbs(held.view(), from, limbs.data);
  }
  require(is_right, kOutside);
  return py::tuple(py::cast(limbs.arrays));
}

py::tuple py_join_limbs(const std::vector<Plain<std::int64_t>>& limbs) {
  require(!limbs.empty() && limbs.size() <= kMostLimbs, "no such number of limbs");
  std::vector<const std::int64_t*> from;
  for (const auto& limb : limbs) {
    require(limb.ndim() == 1 && limb.size() == limbs.front().size(), "limbs are not equally long");
    from.push_back(limb.data());
  }
  const std::int64_t count = limbs.front().size();
  py::array_t<std::int64_t> words(std::vector<py::ssize_t>{count, 2});
  std::int64_t* out = words.mutable_data();
  bool fits;
  {
    const py::gil_scoped_release unlocked;
    fits = join_limbs(from, count, out);
  }
  return py::make_tuple(words, fits);
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

}  // namespace

void bind_keys(py::module_& module) {
  module.def("group_rows", &py_group_rows, py::arg("keys"));
  py::class_<KeyTable>(module, "KeyTable")
      .def_property_readonly("nbytes", &KeyTable::nbytes)
      .def("mark", &py_mark, py::arg("keys"))
      .def("find_pairs", &py_find_pairs, py::arg("keys"), py::arg("start"), py::arg("rows"),
           py::arg("pairs"));
  module.def("key_table", &py_key_table, py::arg("keys"), py::arg("nulls_equal"), py::arg("threads") = 1);
  py::class_<NumberSet>(module, "NumberSet")
      .def(py::init(&make_number_set), py::arg("members"))
      .def("contains", &py_contains, py::arg("values"));
  module.def("summarize_numbers", &py_summarize_numbers, py::arg("columns"), py::arg("wants_distinct"),
             py::arg("threads") = 1);
  module.def("count_groups", &py_count_groups, py::arg("codes"), py::arg("rows"), py::arg("groups"),
             py::arg("validity") = py::none(), py::arg("first_bit") = 0);
  module.def("sum_checked", &py_sum_checked, py::arg("codes"), py::arg("values").noconvert(),
             py::arg("groups"));
  module.def("narrow_sums", &py_narrow_sums, py::arg("words").noconvert());
  module.def("sum_whole", &py_sum_whole, py::arg("codes"), py::arg("values").noconvert(), py::arg("groups"));
  module.def("sum_doubles", &py_sum_doubles, py::arg("codes"), py::arg("values").noconvert(),
             py::arg("groups"));
  module.def("sum_pairs", &py_sum_pairs, py::arg("codes"), py::arg("y").noconvert(), py::arg("x").noconvert(),
             py::arg("groups"));
  module.def("sum_limbs", &py_sum_limbs, py::arg("codes"), py::arg("values"), py::arg("validity"),
             py::arg("first_bit"), py::arg("groups"), py::arg("limbs") = 0);
  module.def("merge_limbs", &py_merge_limbs, py::arg("codes"), py::arg("limbs"), py::arg("groups"));
  module.def("join_limbs", &py_join_limbs, py::arg("limbs"));
  module.def("hash_rows", &py_hash_rows, py::arg("keys"));
  module.def("hash_strings", &py_hash_strings, py::arg("offsets").noconvert(), py::arg("data"));
  module.def("partition_rows", &py_partition_rows, py::arg("hashes").noconvert(), py::arg("shift"),
             py::arg("partitions"));
  module.def("gather_values", &py_gather_values, py::arg("values"), py::arg("places").noconvert());
}

}  // namespace bamquery
