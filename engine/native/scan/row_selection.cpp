#include "engine/native/scan/row_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/selecting/compare.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kWords = VectorMask{}.size();

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
      : columns_(columns), steps_(steps), alive_(columns, asked) {
    found_.steps.resize(steps.size());
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
      StepCounts& counts = found_.steps[s];
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
        found_.failed = static_cast<std::int64_t>(s);
        return false;
      }
      for (const std::uint32_t place : turn_) counts.rows_out += alive_.count(first + place);
    }
    return true;
  }

  RowSelection finish(const SelectionRows& asked, bool located) {
    found_.count = alive_.total();
    std::int64_t all = 0;
    for (std::size_t v = 0; v < alive_.vectors(); ++v) all += columns_[0].rows_of(v);
    found_.all =
        asked.rows == nullptr ? found_.count == all : found_.count == static_cast<std::int64_t>(asked.count);
    if (!located || found_.all) return std::move(found_);
    found_.rows.resize(static_cast<std::size_t>(found_.count));
    std::int64_t* next = found_.rows.data();
    for (std::size_t v = 0; v < alive_.vectors(); ++v) {
      if (alive_.count(v) > 0) next = store_rows(alive_.mask(v), asked.vectors[v] * kVectorRows, next);
    }
    return std::move(found_);
  }

  std::size_t vectors() const { return alive_.vectors(); }
  RowSelection fail() { return std::move(found_); }

 private:
  bool load(const SelectionStep& step) {
    for (std::size_t i = 0; i < step.columns.size(); ++i) {
      if (columns_[step.columns[i]].load(turn_, loaded_[i])) continue;
      found_.mismatch = static_cast<std::int64_t>(step.columns[i]);
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
  RowSelection found_;
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

}  // namespace

RowSelection select_rows(std::span<ColumnVectors> columns, std::span<const SelectionStep> steps,
                         const SelectionRows& rows, bool located) {
  Selecting selecting(columns, steps, rows);
  for (std::size_t first = 0; first < selecting.vectors(); first += kSelectionTurn) {
    if (!selecting.take_turn(first)) return selecting.fail();
  }
  return selecting.finish(rows, located);
}

}  // namespace bamquery
