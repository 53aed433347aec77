// Columns that Python gives, held while C++ looks at them.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/bindings/buffers.hpp"
#include "engine/native/keys/key_column.hpp"

namespace bamquery {

namespace py = pybind11;

/// A column out of an array, and of the bits that say which of its values are there: they stay while it does.
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

/// A column of (values, validity, its first bit).
inline HeldColumn hold_column(const py::handle& column) {
  const auto parts = py::reinterpret_borrow<py::sequence>(column);
  require(py::len(parts) == 3, "a key column is values, validity and its first bit");
  return {py::cast<py::array>(parts[0]), py::object(parts[1]), py::cast<std::int64_t>(parts[2])};
}

/// Such columns, all as long.
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

}  // namespace bamquery
