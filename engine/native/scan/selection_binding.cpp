#include <pybind11/stl.h>

#include <list>
#include <optional>
#include <string>
#include <tuple>

#include "driver/native/bindings/bindings.hpp"
#include "engine/native/scan/row_selection.hpp"
#include "storage/native/packed/column_binding.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

// Python's steps, held while rows are selected: (None, [column], terms, bounds, whether nulls pass, certain
// vectors or None, bytes of strings or None) of codes, (set, [column]) of numbers, (program, columns).
class Steps {
 public:
  Steps(const py::sequence& steps, std::span<const StoredPackedColumn> columns, std::size_t vectors) {
    views_.reserve(steps.size());
    for (const py::handle one : steps) {
      const auto step = py::cast<py::tuple>(one);
      SelectionStep found;
      found.columns = py::cast<std::vector<std::size_t>>(step[1]);
      for (const std::size_t column : found.columns) require(column < columns.size(), "no such column");
      if (py::isinstance<NumberSet>(step[0])) {
        require(found.columns.size() == 1, "a set is of one column");
        const ValueKind kind = columns[found.columns[0]].kind;
        require(kind != ValueKind::kInt128 && kind != ValueKind::kBool && kind != ValueKind::kFloat32 &&
                    kind != ValueKind::kFloat64,
                "sets are of whole numbers of 64 bits");
        found.set = py::cast<const NumberSet*>(step[0]);
      } else if (step[0].is_none()) {
        add_comparison(step, columns, vectors, found);
      } else {
        found.program = py::cast<const Program*>(step[0]);
        require(!found.program->outputs().empty() && found.program->outputs()[0] == Shape::kFlags,
                "there is no condition");
        require(found.columns.size() == found.program->inputs().size(), "columns are not as many as inputs");
        for (std::size_t i = 0; i < found.columns.size(); ++i) {
          require(columns[found.columns[i]].kind == found.program->inputs()[i],
                  "a column is of another kind than the input");
        }
      }
      steps_.push_back(found);
    }
  }

  std::span<const SelectionStep> steps() const { return steps_; }

 private:
  void add_comparison(const py::tuple& step, std::span<const StoredPackedColumn> columns, std::size_t vectors,
                      SelectionStep& found) {
    require(step.size() == 7 && found.columns.size() == 1, "a comparison has one column and seven parts");
    const StoredPackedColumn& column = columns[found.columns[0]];
    const auto terms = py::cast<RowArray>(step[2]);
    const ByteView& bounds = views_.emplace_back(py::object(step[3]), false);
    const auto conditions =
        key_terms(column.kind, as_span(terms), span_of<std::uint64_t>(bounds, "bounds have 8 bytes"));
    found.predicate =
        &predicates_.emplace_back(column.kind, column.scale, conditions, py::cast<bool>(step[4]));
    if (!step[5].is_none()) {
      const auto& certain = flags_.emplace_back(py::cast<FlagArray>(step[5]));
      require(static_cast<std::size_t>(certain.size()) == vectors, "vectors are not as many");
      found.certain = as_span(certain);
    }
    if (!step[6].is_none()) {
      found.string_bytes = as_span(lengths_.emplace_back(py::cast<RowArray>(step[6])));
      require(column.kind != ValueKind::kUInt64, "codes have 32 bits at most");
    }
  }

  using FlagArray = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>;

  std::vector<ByteView> views_;
  std::list<PackedPredicate> predicates_;
  std::list<FlagArray> flags_;
  std::list<RowArray> lengths_;
  std::vector<SelectionStep> steps_;
};

py::tuple result_of(RowSelection&& found, std::vector<SelectedVectors>& columns, std::span<const bool> kept,
                    bool located) {
  py::list steps;
  for (const StepCounts& step : found.steps) {
    steps.append(py::make_tuple(step.rows_in, step.rows_out, step.string_bytes));
  }
  py::list reads;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    SelectedVectors& column = columns[i];
    py::object payload = py::none();
    if (kept[i]) payload = array_of<std::uint8_t>(std::move(column.payload));
    reads.append(py::make_tuple(array_of<std::int64_t>(std::move(column.vectors)),
                                array_of<std::int64_t>(std::move(column.lengths)), payload,
                                column.counts.commands, column.counts.blocks, column.mismatch));
  }
  const std::int64_t count = found.count;
  py::object rows = py::none();
  if (located && !found.all) rows = array_of<std::int64_t>(std::move(found.rows));
  return py::make_tuple(rows, count, steps, reads, found.failed);
}

py::tuple py_select_rows(const SharedFile& file, const std::vector<const HeldPackedColumn*>& given,
                         const std::vector<bool>& kept, const py::sequence& asked, const RowArray& vectors,
                         const std::optional<RowArray>& rows, bool verify, bool located) {
  require(!given.empty() && kept.size() == given.size(), "columns are not as many");
  std::vector<StoredPackedColumn> stored;
  for (const HeldPackedColumn* column : given) {
    stored.push_back(column->column(verify));
    require(stored.back().rows == stored.front().rows, "columns have other rows");
  }
  const Steps steps(asked, stored, static_cast<std::size_t>(vectors.size()));
  SelectionRows selected{as_span(vectors)};
  if (rows) selected = {as_span(vectors), rows->data(), static_cast<std::size_t>(rows->size())};
  const auto flags = std::make_unique<bool[]>(kept.size());
  std::copy(kept.begin(), kept.end(), flags.get());
  const std::span<const bool> kept_flags(flags.get(), kept.size());
  RowSelection found;
  std::vector<SelectedVectors> reads;
  {
    const py::gil_scoped_release unlocked;
    const auto opened = file.acquire();
    found = select_rows({*opened, stored, kept_flags}, steps.steps(), selected, located, reads);
  }
  return result_of(std::move(found), reads, kept_flags, located);
}

}  // namespace

void bind_selection(py::module_& module) {
  using py::arg;
  module.def("select_rows", &py_select_rows, arg("file"), arg("columns"), arg("kept"), arg("steps"),
             arg("vectors"), arg("rows"), arg("verify"), arg("located"));
}

}  // namespace bamquery
