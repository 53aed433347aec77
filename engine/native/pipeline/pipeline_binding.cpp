#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "engine/native/pipeline/program.hpp"
#include "storage/native/kinds.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

// Python's columns, held while a program runs: (values, validity or None, first row) of an Arrow one, of a
// packed one (payload, lengths, parameters, rows of all vectors there are, divisor, origin, numbers of its
// vectors). `batches` are None
// or (rows of each, row ids or None, number of each one's vector); numbers of vectors ascend.
class Columns {
 public:
  Columns(const Program& program, const py::sequence& columns, std::int64_t rows, const py::object& batches) {
    require(rows >= 0 && rows <= kMostRows, "no table has so many rows");
    require(columns.size() == program.inputs().size(), "columns are not as many as inputs");
    if (!batches.is_none()) {
      const auto [counts, picks, numbers] = py::cast<std::tuple<RowArray, py::object, RowArray>>(batches);
      batches_.emplace(Batches{as_span(arrays_.emplace_back(counts)), nullptr});
      numbers_ = as_span(arrays_.emplace_back(numbers));
      require(numbers_.size() == batches_->counts.size(), "vectors are not as many as batches");
      std::int64_t total = 0;
      for (const std::int64_t count : batches_->counts) {
        require(count > 0 && count <= kProgramRows, "no batch has so many rows");
        total += count;
      }
      require(total == rows, "batches have other rows");
      if (!picks.is_none()) {
        const auto ids = as_span(arrays_.emplace_back(py::cast<RowArray>(picks)));
        require(ids.size() == static_cast<std::size_t>(rows), "row ids are not as many as rows");
        batches_->picks = ids.data();
      }
    }
    views_.reserve(2 * columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto column = py::cast<py::tuple>(columns[i]);
      if (column.size() == 7) {
        add_packed(program.inputs()[i], column);
        continue;
      }
      const auto [values, validity, first] =
          py::cast<std::tuple<py::object, py::object, std::int64_t>>(columns[i]);
      add(program.inputs()[i], values, validity, first, rows);
    }
    rows_ = {columns_, rows, batches_ ? &*batches_ : nullptr};
  }

  const ProgramRows& rows() const { return rows_; }

 private:
  void add_packed(ValueKind kind, const py::tuple& given) {
    require(batches_.has_value(), "packed columns come in batches");
    InputColumn column{kind};
    column.is_packed = true;
    const ByteView& payload = views_.emplace_back(given[0], false);
    const ByteView& parameters = views_.emplace_back(given[2], false);
    column.packed.payload = payload.bytes();
    column.packed.vectors = span_of<PackedVector>(parameters, "parameters have 16 bytes a vector");
    column.packed.scale = {py::cast<std::uint64_t>(given[4]), py::cast<std::uint64_t>(given[5])};
    const std::size_t vectors = column.packed.vectors.size();
    require(column.packed.scale.divisor != 0, "the divisor is 0");
    const auto held = as_span(arrays_.emplace_back(py::cast<RowArray>(given[6])));
    const auto lengths = as_span(arrays_.emplace_back(py::cast<RowArray>(given[1])));
    require(held.size() == vectors && lengths.size() == vectors,
            "numbers, lengths and parameters are not as many");
    const auto all_rows = py::cast<std::int64_t>(given[3]);
    require(all_rows >= 0 && all_rows <= kMostRows, "no table has so many rows");
    std::vector<std::int64_t>& starts = made_.emplace_back(vectors);
    std::vector<std::int64_t>& rows = made_.emplace_back(vectors);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < vectors; ++i) {
      require(lengths[i] >= 0 && lengths[i] <= kMostRows - start, "no vector has so many bytes");
      require(held[i] >= 0 && held[i] <= all_rows / kProgramRows, "no such vector");
      starts[i] = start;
      rows[i] = std::min<std::int64_t>(all_rows - held[i] * kProgramRows, kProgramRows);
      start += lengths[i];
    }
    column.packed.starts = starts;
    column.packed.rows = rows;
    column.vectors = places_of(held);
    columns_.push_back(column);
  }

  // Where among a column's vectors that of each batch is; most columns have the same ones.
  std::span<const std::int64_t> places_of(std::span<const std::int64_t> held) {
    std::vector<std::int64_t>& places = made_.emplace_back(numbers_.size());
    std::size_t place = 0;
    for (std::size_t batch = 0; batch < numbers_.size(); ++batch) {
      while (place < held.size() && held[place] < numbers_[batch]) ++place;
      require(place < held.size() && held[place] == numbers_[batch], "no such vector");
      places[batch] = static_cast<std::int64_t>(place);
    }
    return places;
  }

  void add(ValueKind kind, const py::object& values, const py::object& validity, std::int64_t first,
           std::int64_t rows) {
    require(first >= 0 && first <= kMostRows, "no such row");
    const auto bits = static_cast<std::size_t>(first + rows);
    const std::span<const std::byte> bytes = views_.emplace_back(values, false).bytes();
    InputColumn column{kind, bytes.data()};
    if (kind == ValueKind::kBool) {
      require((bits + 7) / 8 <= bytes.size(), "values are too few");
      column.bits = {reinterpret_cast<const std::uint8_t*>(bytes.data()), first};
    } else {
      const auto width = static_cast<std::size_t>(width_of(kind));
      require(bits * width <= bytes.size(), "values are too few");
      const std::size_t alignment = std::min<std::size_t>(width, alignof(std::int64_t));
      require(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0, "values are not aligned");
      column.values += static_cast<std::size_t>(first) * width;
    }
    if (!validity.is_none()) {
      const std::span<const std::byte> known = views_.emplace_back(validity, false).bytes();
      require((bits + 7) / 8 <= known.size(), "a bitmap is too small");
      column.valid = {reinterpret_cast<const std::uint8_t*>(known.data()), first};
    }
    columns_.push_back(column);
  }

  static std::int64_t width_of(ValueKind kind) {
    for (const Kind& known : kKinds) {
      if (known.kind == kind) return known.width;
    }
    return 16;
  }

  std::vector<ByteView> views_;
  std::list<RowArray> arrays_;
  std::list<std::vector<std::int64_t>> made_;
  std::optional<Batches> batches_;
  std::span<const std::int64_t> numbers_;  // of each batch, its vector's
  std::vector<InputColumn> columns_;
  ProgramRows rows_{};
};

std::unique_ptr<Program> make_program(const RowArray& steps, const std::vector<std::string>& inputs,
                                      const RowArray& aggregates, const std::vector<std::uint16_t>& outputs) {
  require(steps.ndim() == 2 && steps.shape(1) == 7, "an instruction has seven numbers");
  require(aggregates.ndim() == 2 && aggregates.shape(1) == 3, "an aggregate has three numbers");
  std::vector<Instruction> instructions;
  for (py::ssize_t i = 0; i < steps.shape(0); ++i) {
    const std::int64_t* step = steps.data(i, 0);
    for (int field = 0; field < 5; ++field) {
      require(step[field] >= 0 && step[field] < 1 << 16, "no such instruction");
    }
    instructions.push_back({static_cast<Operation>(step[0]), static_cast<std::uint16_t>(step[1]),
                            static_cast<std::uint16_t>(step[2]), static_cast<std::uint16_t>(step[3]),
                            static_cast<std::uint16_t>(step[4]), step[5], step[6]});
  }
  std::vector<ValueKind> kinds;
  for (const std::string& name : inputs) kinds.push_back(find_kind(name).kind);
  std::vector<AggregateStep> calls;
  for (py::ssize_t i = 0; i < aggregates.shape(0); ++i) {
    const std::int64_t* call = aggregates.data(i, 0);
    require(call[0] >= 0 && call[0] < kAggregateKinds, "no such aggregate");
    require(call[1] >= -1 && call[1] < 1 << 16 && call[2] >= -1 && call[2] < 1 << 16, "no such register");
    calls.push_back({static_cast<AggregateKind>(call[0]), static_cast<std::int32_t>(call[1]),
                     static_cast<std::int32_t>(call[2])});
  }
  return std::make_unique<Program>(instructions, kinds, calls, outputs);
}

BAMQUERY_CLONES std::uint32_t greatest(const std::uint32_t* codes, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, codes[i]);
  return most;
}

bool are_below(std::span<const std::uint32_t> codes, std::int64_t groups) {
  return codes.empty() || std::int64_t{greatest(codes.data(), codes.size())} < groups;
}

py::list list_states(std::vector<AggregateState>& states) {
  py::list found;
  for (AggregateState& state : states) {
    py::object sums = py::none();
    if (!state.narrow.empty()) {
      sums = array_of<std::int64_t>(std::move(state.narrow));
    } else if (!state.sums.empty()) {
      py::array_t<std::int64_t> words({static_cast<py::ssize_t>(state.sums.size()), py::ssize_t{2}});
      std::memcpy(words.mutable_data(), state.sums.data(), state.sums.size() * sizeof(WideSum));
      sums = std::move(words);
    }
    found.append(py::make_tuple(array_of<std::int64_t>(std::move(state.counts)),
                                array_of<std::int64_t>(std::move(state.values)), sums));
  }
  return found;
}

py::object py_aggregate(const Program& program, const py::sequence& columns, std::int64_t rows,
                        const py::object& codes, std::int64_t groups, const py::object& batches) {
  const Columns given(program, columns, rows, batches);
  require(groups >= 1 && groups <= kMostRows, "there is a group at least");
  std::optional<ByteView> view;
  std::span<const std::uint32_t> places;
  if (!codes.is_none()) {
    view.emplace(codes, false);
    places = span_of<std::uint32_t>(*view, "codes have 32 bits");
    require(places.size() == static_cast<std::size_t>(rows), "codes are not as many as rows");
  }
  std::vector<AggregateState> states;
  bool known = true;
  {
    const py::gil_scoped_release unlocked;
    known = are_below(places, groups);
    if (known) {
      states = program.aggregate(given.rows(), codes.is_none() ? nullptr : places.data(), groups);
    }
  }
  require(known, "a code is that of no group");
  if (states.size() < program.aggregates().size()) return py::none();
  return list_states(states);
}

py::object py_group(const Program& program, const py::sequence& columns, std::int64_t rows,
                    const py::object& codes, const py::object& batches) {
  const Columns given(program, columns, rows, batches);
  require(!program.outputs().empty(), "there are no keys");
  std::optional<ByteView> view;
  std::span<std::byte> places;
  if (!codes.is_none()) {
    places = view.emplace(codes, true).writable();
    require(places.size() == static_cast<std::size_t>(rows) * sizeof(std::uint32_t), "codes have 32 bits");
    require(reinterpret_cast<std::uintptr_t>(places.data()) % alignof(std::uint32_t) == 0,
            "codes are not aligned");
  }
  GroupedStates found;
  {
    const py::gil_scoped_release unlocked;
    found = program.group(given.rows(),
                          codes.is_none() ? nullptr : reinterpret_cast<std::uint32_t*>(places.data()));
  }
  if (found.outcome == GroupedStates::Outcome::kFailed) return py::none();
  if (found.outcome == GroupedStates::Outcome::kTooMany) return py::bool_(false);
  py::list keys;
  for (GroupKeys& key : found.keys) {
    keys.append(py::make_tuple(array_of<std::int64_t>(std::move(key.words)),
                               array_of<std::uint8_t>(std::move(key.valid))));
  }
  return py::make_tuple(found.groups, keys, list_states(found.states));
}

py::object py_evaluate(const Program& program, const py::sequence& columns, std::int64_t rows,
                       const std::vector<std::string>& kinds, const py::sequence& values,
                       const py::sequence& bitmaps, const py::object& batches) {
  const Columns given(program, columns, rows, batches);
  const std::size_t count = program.outputs().size();
  require(kinds.size() == count && values.size() == count && bitmaps.size() == count,
          "outputs are not as many as the program's");
  std::vector<ByteView> views;
  views.reserve(2 * count);
  std::vector<OutputColumn> outputs;
  for (std::size_t i = 0; i < count; ++i) {
    const Kind& kind = find_kind(kinds[i]);
    const bool flags = kind.kind == ValueKind::kBool;
    require(flags == (program.outputs()[i] == Shape::kFlags), "an output is of another kind");
    require(kind.kind != ValueKind::kFloat32, "floats of 32 bits are no output");
    const auto bytes = static_cast<std::size_t>(rows + 7) / 8;
    const auto out = views.emplace_back(py::object(values[i]), true).writable();
    const auto width = static_cast<std::size_t>(kind.width);
    require((flags ? bytes : static_cast<std::size_t>(rows) * width) <= out.size(), "values do not fit");
    require(reinterpret_cast<std::uintptr_t>(out.data()) % std::min<std::size_t>(width, 8) == 0,
            "values are not aligned");
    const auto bitmap = views.emplace_back(py::object(bitmaps[i]), true).writable();
    require(bytes <= bitmap.size(), "a bitmap is too small");
    outputs.push_back({kind.kind, out.data(), reinterpret_cast<std::uint8_t*>(bitmap.data())});
  }
  std::vector<std::int64_t> nulls(count);
  bool done = false;
  {
    const py::gil_scoped_release unlocked;
    done = program.evaluate(given.rows(), outputs, nulls);
  }
  return done ? py::cast(nulls) : py::none();
}

py::object py_select(const Program& program, const py::sequence& columns, std::int64_t rows,
                     const py::object& batches) {
  const Columns given(program, columns, rows, batches);
  require(!program.outputs().empty() && program.outputs()[0] == Shape::kFlags, "there is no condition");
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows));
  std::int64_t found = 0;
  {
    const py::gil_scoped_release unlocked;
    found = program.select(given.rows(), positions.data());
    if (found >= 0) {
      positions.resize(static_cast<std::size_t>(found));
      positions.shrink_to_fit();
    }
  }
  if (found < 0) return py::none();
  return array_of<std::int64_t>(std::move(positions));
}

}  // namespace

void bind_pipeline(py::module_& module) {
  py::class_<Program>(module, "Program")
      .def(py::init(&make_program), py::arg("steps"), py::arg("inputs"), py::arg("aggregates"),
           py::arg("outputs"))
      .def("aggregate", &py_aggregate, py::arg("columns"), py::arg("rows"), py::arg("codes"),
           py::arg("groups"), py::arg("batches") = py::none())
      .def("group", &py_group, py::arg("columns"), py::arg("rows"), py::arg("codes"),
           py::arg("batches") = py::none())
      .def("evaluate", &py_evaluate, py::arg("columns"), py::arg("rows"), py::arg("kinds"), py::arg("values"),
           py::arg("bitmaps"), py::arg("batches") = py::none())
      .def("select", &py_select, py::arg("columns"), py::arg("rows"), py::arg("batches") = py::none());
}

}  // namespace bamquery
