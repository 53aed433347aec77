#include "engine/native/scan/row_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <list>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "driver/native/threads/shared_work.hpp"
#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/selecting/compare.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kWords = VectorMask{}.size();
// Turns of so many vectors: payloads of a few columns stay in a processor's own cache.
constexpr std::size_t kSelectionTurn = 32;
// Vectors that are worth another thread.
constexpr std::int64_t kLeastVectors = 2 * kSelectionTurn;

std::int32_t count_rows(const VectorMask& mask) {
  std::int32_t count = 0;
  for (const std::uint64_t word : mask) count += std::popcount(word);
  return count;
}

// Puts `begin` and the number of each bit that is set behind each other, and returns the end.
std::int64_t* store_rows(const VectorMask& mask, std::int64_t begin, std::int64_t* out) {
  for (std::size_t word = 0; word < kWords; ++word, begin += 64) {
    std::uint64_t left = mask[word];
    if (left == ~std::uint64_t{0}) {
      for (std::int64_t i = 0; i < 64; ++i) out[i] = begin + i;
      out += 64;
      continue;
    }
    for (; left != 0; left &= left - 1) *out++ = begin + std::countr_zero(left);
  }
  return out;
}

// Rows that are alive, a mask a vector.
class AliveRows {
 public:
  AliveRows(std::span<ColumnVectors> columns, const SelectionRows& asked)
      : masks_(asked.vectors.size()), counts_(asked.vectors.size()) {
    std::size_t next = 0;
    for (std::size_t v = 0; v < masks_.size(); ++v) {
      const auto rows = static_cast<std::uint32_t>(columns[0].rows_of(v));
      if (asked.rows == nullptr) {
        masks_[v] = first_rows(rows);
        counts_[v] = static_cast<std::int32_t>(rows);
        continue;
      }
      const std::int64_t begin = asked.vectors[v] * kVectorRows;
      masks_[v] = {};
      std::int64_t least = begin;
      for (; next < asked.count && asked.rows[next] < begin + rows; ++next) {
        const std::int64_t row = asked.rows[next];
        if (row < least) throw std::invalid_argument("rows do not ascend, or are in none of the vectors");
        least = row + 1;
        const auto place = static_cast<std::uint64_t>(row - begin);
        masks_[v][place / 64] |= std::uint64_t{1} << (place % 64);
        ++counts_[v];
      }
    }
    if (next < asked.count) throw std::invalid_argument("rows are in none of the vectors");
  }

  std::size_t vectors() const { return masks_.size(); }
  std::int32_t count(std::size_t v) const { return counts_[v]; }
  const VectorMask& mask(std::size_t v) const { return masks_[v]; }
  void keep(std::size_t v, const VectorMask& passed) {
    for (std::size_t word = 0; word < kWords; ++word) masks_[v][word] &= passed[word];
    counts_[v] = count_rows(masks_[v]);
  }
  std::int64_t total() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

 private:
  std::vector<VectorMask> masks_;
  std::vector<std::int32_t> counts_;
};

// One call's work: what is used again turn by turn.
class Selecting {
 public:
  Selecting(std::span<ColumnVectors> columns, std::span<const SelectionStep> steps,
            const SelectionRows& asked)
      : columns_(columns), steps_(steps), alive_(columns, asked), counts_(steps.size()) {
    most_inputs_ = 1;
    for (const SelectionStep& step : steps) {
      runs_.push_back(step.program == nullptr ? nullptr : std::make_unique<ProgramRun>(*step.program));
      most_inputs_ = std::max(most_inputs_, step.columns.size());
    }
    loaded_.resize(most_inputs_);
    std::iota(places_.begin(), places_.end(), std::int64_t{0});
  }

  // False where nothing more is to be said.
  bool take_turn(std::size_t first) {
    const std::size_t end = std::min(first + kSelectionTurn, alive_.vectors());
    for (ColumnVectors& column : columns_) column.begin_turn(first);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const SelectionStep& step = steps_[s];
      StepCounts& counts = counts_[s];
      turn_.clear();
      for (std::size_t v = first; v < end; ++v) {
        if (alive_.count(v) == 0) continue;
        counts.rows_in += alive_.count(v);
        if (!step.certain.empty() && step.certain[v] != 0) {
          counts.rows_out += alive_.count(v);
        } else {
          turn_.push_back(static_cast<std::uint32_t>(v - first));
        }
      }
      if (turn_.empty()) continue;
      if (!load(step)) return false;
      if (!step.string_bytes.empty()) counts.string_bytes += sum_strings(step, first);
      if (step.set != nullptr) {
        look_up(step, first);
      } else if (step.program == nullptr) {
        compare(step, first);
      } else if (!compute(s, first)) {
        failed_ = static_cast<std::int64_t>(s);
        return false;
      }
      for (const std::uint32_t place : turn_) counts.rows_out += alive_.count(first + place);
    }
    return true;
  }

  // How many rows pass, and whether all that were asked about do.
  std::int64_t count() const { return alive_.total(); }
  bool all(const SelectionRows& asked) const {
    if (asked.rows != nullptr) return count() == static_cast<std::int64_t>(asked.count);
    std::int64_t rows = 0;
    for (std::size_t v = 0; v < alive_.vectors(); ++v) rows += columns_[0].rows_of(v);
    return count() == rows;
  }

  // Writes the ids of those that pass.
  void store(const SelectionRows& asked, std::int64_t* next) const {
    for (std::size_t v = 0; v < alive_.vectors(); ++v) {
      if (alive_.count(v) > 0) next = store_rows(alive_.mask(v), asked.vectors[v] * kVectorRows, next);
    }
  }

  std::size_t vectors() const { return alive_.vectors(); }
  std::span<const StepCounts> counts() const { return counts_; }
  // Number of the program that could not compute some row.
  std::int64_t failed() const { return failed_; }

 private:
  bool load(const SelectionStep& step) {
    for (std::size_t i = 0; i < step.columns.size(); ++i) {
      if (columns_[step.columns[i]].load(turn_, loaded_[i])) continue;
      return false;
    }
    return true;
  }

  void compare(const SelectionStep& step, std::size_t first) {
    const LoadedVectors& loaded = loaded_[0];
    for (std::size_t i = 0; i < turn_.size(); ++i) passed_[i] = {};
    compare_packed(*step.predicate, loaded.payload, loaded.starts, loaded.vectors, loaded.rows,
                   reinterpret_cast<std::uint8_t*>(passed_.data()));
    for (std::size_t i = 0; i < turn_.size(); ++i) alive_.keep(first + turn_[i], passed_[i]);
  }

  InputColumn input(std::size_t index, std::size_t column, ValueKind kind) const {
    const LoadedVectors& loaded = loaded_[index];
    InputColumn found{kind};
    found.is_packed = true;
    found.packed = {loaded.payload, loaded.starts, loaded.vectors, loaded.rows,
                    columns_[column].column().scale};
    found.vectors = std::span(places_).first(turn_.size());
    return found;
  }

  // The batch of a vector's rows that are alive.
  RowBatch batch(std::size_t place, std::size_t v) {
    RowBatch found{place, 0, alive_.count(v), nullptr};
    if (found.count == columns_[0].rows_of(v)) return found;
    store_rows(alive_.mask(v), 0, picks_.data());
    found.picks = picks_.data();
    return found;
  }

  bool compute(std::size_t s, std::size_t first) {
    const SelectionStep& step = steps_[s];
    inputs_.clear();
    for (std::size_t i = 0; i < step.columns.size(); ++i) {
      inputs_.push_back(input(i, step.columns[i], step.program->inputs()[i]));
    }
    for (std::size_t i = 0; i < turn_.size(); ++i) {
      const std::size_t v = first + turn_[i];
      const RowBatch rows = batch(i, v);
      if (!runs_[s]->next(inputs_, rows)) return false;
      const auto& flags = runs_[s]->output(0).flags;  // those of null rows are 0
      VectorMask passed{};
      for (std::int32_t r = 0; r < rows.count; ++r) {
        const auto row = static_cast<std::uint64_t>(rows.picks == nullptr ? r : rows.picks[r]);
        passed[row / 64] |= std::uint64_t{flags[static_cast<std::size_t>(r)]} << (row % 64);
      }
      alive_.keep(v, passed);
    }
    return true;
  }

  void look_up(const SelectionStep& step, std::size_t first) {
    const InputColumn numbers = input(0, step.columns[0], columns_[step.columns[0]].column().kind);
    Register& found = own_register();
    for (std::size_t i = 0; i < turn_.size(); ++i) {
      const std::size_t v = first + turn_[i];
      const RowBatch rows = batch(i, v);
      load_packed(numbers.kind, numbers.packed, i, rows.picks, rows.count, found);
      VectorMask bits{};
      step.set->contains({reinterpret_cast<const std::byte*>(found.words.data()), 8, true, rows.count},
                         reinterpret_cast<std::uint8_t*>(bits.data()));
      const bool scatters = rows.picks != nullptr;
      if (!scatters && found.all_valid) {
        alive_.keep(v, bits);  // what is behind the last row is dead
        continue;
      }
      VectorMask passed{};
      for (std::int32_t r = 0; r < rows.count; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const std::uint64_t valid = found.all_valid ? 1 : found.valid[at];
        const auto row = static_cast<std::uint64_t>(scatters ? rows.picks[r] : r);
        passed[row / 64] |= (bits[at / 64] >> (at % 64) & valid & 1) << (row % 64);
      }
      alive_.keep(v, passed);
    }
  }

  Register& own_register() {
    if (!register_) register_ = std::make_unique_for_overwrite<Register>();
    return *register_;
  }

  std::int64_t sum_strings(const SelectionStep& step, std::size_t first) {
    const ColumnVectors& column = columns_[step.columns[0]];
    const InputColumn codes = input(0, step.columns[0], column.column().kind);
    Register& found = own_register();
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < turn_.size(); ++i) {
      const RowBatch rows = batch(i, first + turn_[i]);
      load_packed(codes.kind, codes.packed, i, rows.picks, rows.count, found);
      for (std::int32_t r = 0; r < rows.count; ++r) {
        const auto row = static_cast<std::size_t>(r);
        if (!found.all_valid && found.valid[row] == 0) continue;
        // Codes that are none are found out where strings are made of them.
        const auto code = static_cast<std::uint64_t>(found.words[row]);
        sum += step.string_bytes[std::min<std::size_t>(code, step.string_bytes.size() - 1)];
      }
    }
    return sum;
  }

  std::span<ColumnVectors> columns_;
  std::span<const SelectionStep> steps_;
  AliveRows alive_;
  std::vector<StepCounts> counts_;
  std::int64_t failed_ = -1;
  std::size_t most_inputs_;
  std::vector<std::unique_ptr<ProgramRun>> runs_;
  std::vector<std::uint32_t> turn_;  // places of the vectors that a step looks at
  std::vector<LoadedVectors> loaded_;
  std::vector<InputColumn> inputs_;
  std::array<std::int64_t, kSelectionTurn> places_;
  std::array<VectorMask, kSelectionTurn> passed_;
  std::array<std::int64_t, kPackedVectorRows> picks_;
  std::unique_ptr<Register> register_;
};

// A run of the vectors, by one thread.
class Run {
 public:
  Run(const SelectionColumns& columns, std::span<const SelectionStep> steps, const SelectionRows& rows)
      : rows_(rows), steps_(steps.begin(), steps.end()) {
    columns_.reserve(columns.columns.size());
    for (std::size_t i = 0; i < columns.columns.size(); ++i) {
      columns_.emplace_back(columns.file, columns.columns[i], rows.vectors, kSelectionTurn, columns.kept[i]);
    }
    const bool reads_all = !steps.empty() && steps[0].certain.empty() && rows.rows == nullptr;
    if (reads_all) {
      for (const std::size_t column : steps[0].columns) columns_[column].expect_all();
    }
    for (SelectionStep& step : steps_) {
      // What a predicate has found out is for one thread.
      if (step.predicate != nullptr) step.predicate = &predicates_.emplace_back(*step.predicate);
    }
    selecting_ = std::make_unique<Selecting>(columns_, steps_, rows_);
  }

  // False where nothing more is to be said.
  bool select() {
    for (std::size_t first = 0; first < selecting_->vectors(); first += kSelectionTurn) {
      if (!selecting_->take_turn(first)) return false;
    }
    return true;
  }

  const Selecting& selecting() const { return *selecting_; }
  bool all() const { return selecting_->all(rows_); }
  void store(std::int64_t* next) const { selecting_->store(rows_, next); }
  ColumnVectors& column(std::size_t i) { return columns_[i]; }

 private:
  SelectionRows rows_;
  std::vector<SelectionStep> steps_;
  std::list<PackedPredicate> predicates_;
  std::vector<ColumnVectors> columns_;
  std::unique_ptr<Selecting> selecting_;
};

// Steps and rows as they are for vectors from `first` on.
std::vector<SelectionStep> steps_of(std::span<const SelectionStep> steps, std::size_t first,
                                    std::size_t count) {
  std::vector<SelectionStep> own(steps.begin(), steps.end());
  for (SelectionStep& step : own) {
    if (!step.certain.empty()) step.certain = step.certain.subspan(first, count);
  }
  return own;
}

SelectionRows rows_of(const SelectionRows& rows, std::size_t first, std::size_t count) {
  SelectionRows own{rows.vectors.subspan(first, count)};
  if (rows.rows == nullptr) return own;
  // Rows before the first vector are the first run's, and those behind the last one the last run's: either
  // says that they are in none.
  const auto before = [&](std::size_t vector) {
    if (vector == 0) return rows.rows;
    if (vector == rows.vectors.size()) return rows.rows + rows.count;
    return std::lower_bound(rows.rows, rows.rows + rows.count, rows.vectors[vector] * kVectorRows);
  };
  own.rows = before(first);
  own.count = static_cast<std::size_t>(std::max<std::ptrdiff_t>(before(first + count) - own.rows, 0));
  return own;
}

// What was read of a column, but for payloads: these have their memory, and where each run's begins, `places`
// says.
SelectedVectors gather_reads(std::span<const std::unique_ptr<Run>> runs, std::size_t column, bool kept,
                             std::vector<std::size_t>& places) {
  SelectedVectors found;
  std::vector<const ColumnVectors*> parts;
  std::size_t bytes = 0;
  for (const auto& run : runs) {
    const ColumnVectors& own = run->column(column);
    parts.push_back(&own);
    if (found.mismatch < 0) found.mismatch = own.mismatch();
    found.vectors.insert(found.vectors.end(), own.read().begin(), own.read().end());
    found.lengths.insert(found.lengths.end(), own.lengths().begin(), own.lengths().end());
    places.push_back(bytes);
    bytes += own.used();
  }
  found.counts = ColumnVectors::count(parts);
  if (!kept) return found;
  if (runs.size() == 1) {
    found.payload = runs[0]->column(column).take_payload();
  } else {
    found.payload.resize(bytes);
  }
  return found;
}

}  // namespace

RowSelection select_rows(const SelectionColumns& columns, std::span<const SelectionStep> steps,
                         const SelectionRows& rows, bool located, std::vector<SelectedVectors>& reads) {
  const auto vectors = static_cast<std::int64_t>(rows.vectors.size());
  std::vector<std::unique_ptr<Run>> runs(static_cast<std::size_t>(worth_parts(vectors, kLeastVectors)));
  const auto count = static_cast<std::int64_t>(runs.size());
  share_items(vectors, count, kSelectionTurn, [&](std::int64_t part, std::int64_t first, std::int64_t own) {
    const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(own);
    auto run = std::make_unique<Run>(columns, steps_of(steps, begin, size), rows_of(rows, begin, size));
    run->select();
    runs[static_cast<std::size_t>(part)] = std::move(run);
  });
  RowSelection found;
  found.steps.resize(steps.size());
  found.all = true;
  std::vector<std::int64_t> begins;
  for (const auto& run : runs) {
    const Selecting& own = run->selecting();
    if (found.failed < 0) found.failed = own.failed();
    begins.push_back(found.count);
    found.count += own.count();
    found.all = found.all && run->all();
    for (std::size_t s = 0; s < steps.size(); ++s) {
      found.steps[s].rows_in += own.counts()[s].rows_in;
      found.steps[s].rows_out += own.counts()[s].rows_out;
      found.steps[s].string_bytes += own.counts()[s].string_bytes;
    }
  }
  bool is_right = found.failed < 0;
  std::vector<std::vector<std::size_t>> places(columns.columns.size());
  for (std::size_t i = 0; i < columns.columns.size(); ++i) {
    reads.push_back(gather_reads(runs, i, columns.kept[i], places[i]));
    is_right = is_right && reads.back().mismatch < 0;
  }
  if (!is_right) return found;
  const bool stored = located && !found.all;
  if (stored) found.rows.resize(static_cast<std::size_t>(found.count));
  share_parts(count, [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    if (stored) runs[at]->store(found.rows.data() + begins[at]);
    for (std::size_t i = 0; count > 1 && i < columns.columns.size(); ++i) {
      if (columns.kept[i]) runs[at]->column(i).copy_payload(reads[i].payload.data() + places[i][at]);
    }
    runs[at].reset();  // to give memory back takes time, too
  });
  return found;
}

}  // namespace bamquery
