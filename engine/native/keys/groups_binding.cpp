#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "engine/native/keys/group_strings.hpp"
#include "engine/native/keys/group_sums.hpp"
#include "engine/native/keys/grouping/grouping.hpp"
#include "engine/native/keys/held_columns.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

template <typename T>
using Plain = py::array_t<T, py::array::c_style>;

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

bool py_are_same_strings(const Plain<std::int64_t>& offsets, const py::object& data,
                         const py::object& validity, std::int64_t first_bit, const Plain<std::int32_t>& codes,
                         const Plain<std::int64_t>& leaders) {
  require(offsets.ndim() == 1 && offsets.size() == codes.size() + 1,
          "strings have an offset each, and one more");
  const ByteView bytes(data, false);
  StringRows rows{{offsets.data(), static_cast<std::size_t>(offsets.size())},
                  reinterpret_cast<const std::byte*>(bytes.bytes().data()),
                  static_cast<std::int64_t>(bytes.bytes().size()),
                  {}};
  std::optional<ByteView> bits;
  if (!validity.is_none()) {
    bits.emplace(validity, false);
    require(first_bit >= 0 && codes.size() <= 8 * static_cast<std::int64_t>(bits->bytes().size()) - first_bit,
            "bitmap is too small");
    rows.valid = {reinterpret_cast<const std::uint8_t*>(bits->bytes().data()), first_bit};
  }
  const std::span<const std::int32_t> of_rows(codes.data(), static_cast<std::size_t>(codes.size()));
  const std::span<const std::int64_t> first(leaders.data(), static_cast<std::size_t>(leaders.size()));
  const py::gil_scoped_release unlocked;
  return are_same_strings(rows, of_rows, first);
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

}  // namespace

void bind_groups(py::module_& module) {
  module.def("group_rows", &py_group_rows, py::arg("keys"));
  module.def("are_same_strings", &py_are_same_strings, py::arg("offsets").noconvert(), py::arg("data"),
             py::arg("validity"), py::arg("first_bit"), py::arg("codes").noconvert(),
             py::arg("leaders").noconvert());
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
}

}  // namespace bamquery
