#include "engine/native/pipeline/program.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "driver/native/threads/shared_work.hpp"
#include "engine/native/pipeline/arithmetic.hpp"
#include "engine/native/pipeline/calendar.hpp"
#include "engine/native/pipeline/dense_groups.hpp"
#include "engine/native/pipeline/logic.hpp"
#include "engine/native/pipeline/output_column.hpp"

namespace bamquery {
namespace {

constexpr std::uint32_t kMostRegisters = 1024;
// Times as many groups as there are that all parts together may have.
constexpr std::int64_t kMostOverlap = 2;
// Groups that there is room for before the first one is known.
constexpr std::int64_t kFirstGroups = 64;

// What an operation reads and writes.
struct Signature {
  int words;  // of its operands, from a on, so many words
  int flags;  // and then so many flags
  Shape out;
};

bool is_constant(Operation operation) {
  return operation == Operation::kConstant || operation == Operation::kConstantFlag;
}

bool is_logic(Operation operation) {
  return (operation >= Operation::kEqual && operation <= Operation::kFlagToWord);
}

bool is_calendar(Operation operation) {
  return (operation >= Operation::kYear && operation <= Operation::kDay) ||
         operation == Operation::kDayOfYear;
}

Signature signature_of(Operation operation) {
  switch (operation) {
    case Operation::kLoad:
    case Operation::kConstant:
      return {0, 0, Shape::kWords};
    case Operation::kConstantFlag:
      return {0, 0, Shape::kFlags};
    case Operation::kEqual:
    case Operation::kNotEqual:
    case Operation::kLess:
    case Operation::kLessEqual:
    case Operation::kEqualDoubles:
    case Operation::kNotEqualDoubles:
    case Operation::kLessDoubles:
    case Operation::kLessEqualDoubles:
      return {2, 0, Shape::kFlags};
    case Operation::kAnd:
    case Operation::kOr:
      return {0, 2, Shape::kFlags};
    case Operation::kNot:
      return {0, 1, Shape::kFlags};
    case Operation::kFlagToWord:
      return {0, 1, Shape::kWords};
    case Operation::kRequireRange:
    case Operation::kDivideRounding:
    case Operation::kFloorDivide:
    case Operation::kFloorRemainder:
    case Operation::kAbsolute:
    case Operation::kNegateDoubles:
    case Operation::kAbsoluteDoubles:
    case Operation::kToDouble:
    case Operation::kDecimalToDouble:
    case Operation::kYear:
    case Operation::kMonth:
    case Operation::kDay:
    case Operation::kDayOfYear:
      return {1, 0, Shape::kWords};
    default:
      return {2, 0, Shape::kWords};
  }
}

void fill_constant(const Instruction& step, Register& out) {
  const bool null = step.extra != 0;
  out.all_valid = !null;
  if (null) out.valid.fill(0);
  if (step.operation == Operation::kConstant) {
    out.words.fill(null ? 0 : step.immediate);
  } else {
    out.flags.fill(null ? 0 : static_cast<std::uint8_t>(step.immediate != 0));
  }
}

}  // namespace

void Program::require_shape(std::uint32_t index, Shape shape) const {
  if (index >= written_.size() || written_[index] != 1 + static_cast<std::uint8_t>(shape)) {
    throw std::invalid_argument("a register is read that holds nothing of this kind");
  }
}

Program::Program(std::span<const Instruction> steps, std::span<const ValueKind> inputs,
                 std::span<const AggregateStep> aggregates, std::span<const std::uint16_t> outputs)
    : inputs_(inputs.begin(), inputs.end()),
      aggregates_(aggregates.begin(), aggregates.end()),
      outputs_(outputs.begin(), outputs.end()) {
  std::vector<std::uint8_t> constant;
  for (const Instruction& step : steps) {
    if (static_cast<std::uint16_t>(step.operation) >= kOperations || step.out >= kMostRegisters) {
      throw std::invalid_argument("no such instruction");
    }
    registers_ = std::max(registers_, std::uint32_t{step.out} + 1);
    written_.resize(registers_);
    constant.resize(registers_);
    Signature signature = signature_of(step.operation);
    const std::uint16_t operands[] = {step.a, step.b, step.c};
    int used = signature.words + signature.flags;
    if (step.operation == Operation::kChoose || step.operation == Operation::kChooseFlag) {
      used = 3;
      signature.out = step.operation == Operation::kChoose ? Shape::kWords : Shape::kFlags;
      require_shape(step.a, Shape::kFlags);
      require_shape(step.b, signature.out);
      require_shape(step.c, signature.out);
    } else if (step.operation == Operation::kIsNull || step.operation == Operation::kIsNotNull) {
      used = 1;
      signature.out = Shape::kFlags;
      if (step.a >= written_.size() || written_[step.a] == 0) require_shape(step.a, Shape::kWords);
    } else {
      for (int i = 0; i < used; ++i) {
        require_shape(operands[i], i < signature.words ? Shape::kWords : Shape::kFlags);
      }
    }
    for (int i = 0; i < used; ++i) {
      if (operands[i] == step.out) throw std::invalid_argument("an instruction writes over what it reads");
    }
    if (step.operation == Operation::kLoad) {
      if (step.immediate < 0 || static_cast<std::size_t>(step.immediate) >= inputs.size()) {
        throw std::invalid_argument("no such input");
      }
      const ValueKind kind = inputs[static_cast<std::size_t>(step.immediate)];
      if (kind == ValueKind::kUInt64) throw std::invalid_argument("unsigned words are no input");
      signature.out = kind == ValueKind::kBool ? Shape::kFlags : Shape::kWords;
    }
    const bool divides = step.operation == Operation::kDivideRounding ||
                         step.operation == Operation::kFloorDivide ||
                         step.operation == Operation::kFloorRemainder;
    if (divides && step.immediate <= 0) throw std::invalid_argument("a divisor is not positive");
    if (step.operation == Operation::kDecimalToDouble && (step.immediate < 0 || step.immediate > 22)) {
      throw std::invalid_argument("a scale is too large");
    }
    if (constant[step.out] != 0) throw std::invalid_argument("a constant is written over");
    constant[step.out] = is_constant(step.operation);
    written_[step.out] = static_cast<std::uint8_t>(1 + static_cast<std::uint8_t>(signature.out));
    (is_constant(step.operation) ? constants_ : steps_).push_back(step);
  }
  for (const AggregateStep& step : aggregates) {
    if (static_cast<std::uint8_t>(step.kind) >= kAggregateKinds) {
      throw std::invalid_argument("no such aggregate");
    }
    if (step.argument >= 0) {
      const auto index = static_cast<std::uint32_t>(step.argument);
      if (step.kind != AggregateKind::kCount) require_shape(index, Shape::kWords);
      if (index >= written_.size() || written_[index] == 0) require_shape(index, Shape::kWords);
    } else if (step.kind != AggregateKind::kCount) {
      throw std::invalid_argument("an aggregate has no argument");
    }
    if (step.filter >= 0) require_shape(static_cast<std::uint32_t>(step.filter), Shape::kFlags);
  }
  for (const std::uint16_t output : outputs) {
    if (output >= written_.size() || written_[output] == 0) require_shape(output, Shape::kWords);
    output_shapes_.push_back(static_cast<Shape>(written_[output] - 1));
  }
}

namespace {

bool load(const InputColumn& column, const RowBatch& batch, Register& out) {
  if (!column.is_packed) return load_rows(column, batch.row, batch.count, out);
  const auto vector = static_cast<std::size_t>(column.vectors[batch.number]);
  load_packed(column.kind, column.packed, vector, batch.picks, batch.count, out);
  return true;
}

bool run_step(const Instruction& step, std::span<const InputColumn> columns, const RowBatch& batch,
              Register* registers) {
  if (step.operation == Operation::kLoad) {
    return load(columns[static_cast<std::size_t>(step.immediate)], batch, registers[step.out]);
  }
  if (is_calendar(step.operation)) return run_calendar(step, registers, batch.count);
  if (is_logic(step.operation)) {
    run_logic(step, registers, batch.count);
    return true;
  }
  return run_arithmetic(step, registers, batch.count);
}

}  // namespace

ProgramRun::ProgramRun(const Program& program)
    : program_(program),
      registers_(std::make_unique_for_overwrite<Register[]>(std::max(program.registers_, 1u))) {
  for (const Instruction& step : program.constants_) fill_constant(step, registers_[step.out]);
}

bool ProgramRun::next(std::span<const InputColumn> columns, const RowBatch& batch) {
  for (const Instruction& step : program_.steps_) {
    if (!run_step(step, columns, batch, registers_.get())) return false;
  }
  return true;
}

namespace {

// Rows that are worth another thread.
constexpr std::int64_t kLeastRows = 1 << 15;
// Rows of each thread for every group, so that putting its groups together is little beside them.
constexpr std::int64_t kRowsEach = 8;

// The same where groups are put together that nobody knows the number of.
constexpr std::int64_t kLeastGrouped = 1 << 16;

RowRun all_rows(const ProgramRows& rows) { return {0, 0, rows.rows}; }

// Runs of rows for as many threads as are worth it; each but the first begins with a byte of a bitmap.
std::vector<RowRun> runs_of(const ProgramRows& rows, std::int64_t least = kLeastRows) {
  const std::int64_t parts = worth_parts(rows.rows, least);
  std::vector<RowRun> runs{all_rows(rows)};
  if (parts == 1) return runs;
  std::int64_t row = 0;
  for (std::size_t batch = 0; row < rows.rows; ++batch) {
    const auto done = static_cast<std::int64_t>(runs.size());
    if (row >= rows.rows * done / parts && row % 8 == 0 && row > runs.back().row) {
      runs.back().end = row;
      runs.push_back({batch, row, rows.rows});
    }
    row += rows.batches == nullptr ? kProgramRows : rows.batches->counts[batch];
  }
  return runs;
}

// Rows of a part, and what they are of: `groups` groups from number `first` on.
struct GroupedRun {
  RowRun rows;
  std::uint32_t first;
  std::int64_t groups;
};

BAMQUERY_CLONES GroupedRun groups_of(const RowRun& rows, const std::uint32_t* codes) {
  std::uint32_t least = ~std::uint32_t{0}, most = 0;
  for (std::int64_t row = rows.row; row < rows.end; ++row) {
    least = std::min(least, codes[row]);
    most = std::max(most, codes[row]);
  }
  return {rows, least, std::int64_t{most} - least + 1};
}

// Parts of rows with states of their own. Each has all groups, if these are few; or those that its rows are
// of, where hardly any are of several parts: so it is where rows come in the order of a key, as they are
// numbered when they first appear.
std::vector<GroupedRun> grouped_runs(const ProgramRows& rows, const std::uint32_t* codes,
                                     std::int64_t groups) {
  const std::vector<RowRun> fewer = runs_of(rows, std::max(kLeastRows, kRowsEach * groups));
  const std::vector<RowRun> more = runs_of(rows);
  std::vector<GroupedRun> runs(more.size());
  if (codes != nullptr && fewer.size() < more.size()) {
    share_parts(static_cast<std::int64_t>(more.size()), [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      runs[at] = groups_of(more[at], codes);
    });
    std::int64_t all = 0;
    for (const GroupedRun& run : runs) all += run.groups;
    if (all <= kMostOverlap * groups) return runs;
  }
  runs.clear();
  for (const RowRun& run : fewer) runs.push_back({run, 0, groups});
  return runs;
}

bool adds_doubles(std::span<const AggregateStep> steps) {
  return std::ranges::any_of(
      steps, [](const AggregateStep& step) { return step.kind == AggregateKind::kSumDoubles; });
}

}  // namespace

// `sink` takes batches, and says whether it wants more.
template <typename Sink>
bool Program::run(const ProgramRows& rows, const RowRun& part, Sink&& sink) const {
  ProgramRun own(*this);
  RowBatch batch{part.batch, part.row, 0, nullptr};
  for (; batch.row < part.end; batch.row += batch.count, ++batch.number) {
    const std::int64_t most = rows.batches == nullptr ? kProgramRows : rows.batches->counts[batch.number];
    batch.count = static_cast<std::int32_t>(std::min<std::int64_t>(most, rows.rows - batch.row));
    if (rows.batches != nullptr && rows.batches->picks != nullptr) {
      batch.picks = rows.batches->picks + batch.row;
    }
    if (!own.next(rows.columns, batch)) return false;
    if (!sink(own.registers(), batch.row, batch.count)) return false;
  }
  return true;
}

std::vector<AggregateState> Program::aggregate(const ProgramRows& rows, const std::uint32_t* codes,
                                               std::int64_t groups) const {
  // Doubles are added in the order of all rows.
  const std::vector<GroupedRun> runs = adds_doubles(aggregates_)
                                           ? std::vector<GroupedRun>{{all_rows(rows), 0, groups}}
                                           : grouped_runs(rows, codes, groups);
  std::vector<std::vector<AggregateState>> parts(runs.size());
  share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    const GroupedRun& of_part = runs[at];
    std::vector<Aggregator> aggregators;
    aggregators.reserve(aggregates_.size());
    for (const AggregateStep& step : aggregates_) aggregators.emplace_back(step, of_part.groups);
    RowCounter counter(of_part.groups);
    std::array<std::uint32_t, kProgramRows> moved;
    const bool done = run(rows, of_part.rows, [&](Register* registers, std::int64_t row, std::int32_t count) {
      const std::uint32_t* own = codes == nullptr ? nullptr : codes + row;
      if (of_part.first > 0) {
        for (std::int32_t i = 0; i < count; ++i) moved[static_cast<std::size_t>(i)] = own[i] - of_part.first;
        own = moved.data();
      }
      counter.add(own, count);
      for (Aggregator& aggregator : aggregators) aggregator.add(registers, own, count);
      return true;
    });
    if (!done) return;
    const LargeVector<std::int64_t> counts = counter.finish();
    for (Aggregator& aggregator : aggregators) parts[at].push_back(aggregator.finish(counts));
  });
  for (const std::vector<AggregateState>& part : parts) {
    if (part.size() < aggregates_.size()) return {};
  }
  std::vector<AggregateState> states = std::move(parts[0]);
  const auto put_together = [&](std::int64_t step) {
    const auto i = static_cast<std::size_t>(step);
    const AggregateKind kind = aggregates_[i].kind;
    if (runs[0].groups < groups) {
      const AggregateState first = std::exchange(states[i], AggregateState::of_none(kind, groups));
      states[i].add(kind, first, runs[0].first);
    }
    for (std::size_t part = 1; part < parts.size(); ++part) {
      states[i].add(kind, parts[part][i], runs[part].first);
    }
  };
  const auto steps = static_cast<std::int64_t>(states.size());
  if (groups >= kLeastRows) {
    share_parts(steps, put_together);
  } else {
    for (std::int64_t step = 0; step < steps; ++step) put_together(step);
  }
  return states;
}

// Rows of one run by groups of their own.
GroupedStates Program::group(const ProgramRows& rows, const RowRun& part, DenseGroups& dense,
                             std::uint32_t* codes) const {
  using Outcome = GroupedStates::Outcome;
  std::int64_t room = kFirstGroups;
  std::vector<Aggregator> aggregators;
  aggregators.reserve(aggregates_.size());
  for (const AggregateStep& step : aggregates_) aggregators.emplace_back(step, room);
  RowCounter counter(room);
  std::vector<const Register*> keys(outputs_.size());
  std::array<std::uint32_t, kProgramRows> own;
  bool fits = true;
  const bool done = run(rows, part, [&](Register* registers, std::int64_t row, std::int32_t count) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = &registers[outputs_[i]];
    std::uint32_t* const numbers = codes == nullptr ? own.data() : codes + row;
    fits = dense.number(keys, count, numbers);
    if (!fits) return false;
    if (dense.groups() > room) {
      while (dense.groups() > room) room *= 2;
      counter.grow(room);
      for (Aggregator& aggregator : aggregators) aggregator.grow(room);
    }
    counter.add(numbers, count);
    for (Aggregator& aggregator : aggregators) aggregator.add(registers, numbers, count);
    return true;
  });
  GroupedStates found{done   ? Outcome::kDone
                      : fits ? Outcome::kFailed
                             : Outcome::kTooMany,
                      dense.groups(),
                      {},
                      {}};
  if (found.outcome != Outcome::kDone) return found;
  const LargeVector<std::int64_t> counts = counter.finish();
  for (Aggregator& aggregator : aggregators) {
    found.states.push_back(aggregator.finish(counts));
    found.states.back().resize(dense.groups());
  }
  return found;
}

GroupedStates Program::group(const ProgramRows& rows, std::uint32_t* codes) const {
  using Outcome = GroupedStates::Outcome;
  const std::vector<RowRun> runs = runs_of(rows, adds_doubles(aggregates_) ? rows.rows + 1 : kLeastGrouped);
  std::vector<DenseGroups> dense(runs.size(), DenseGroups(output_shapes_));
  std::vector<GroupedStates> parts(runs.size());
  share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    parts[at] = group(rows, runs[at], dense[at], codes);
  });
  // What the first of them has failed with, so that it is the same for any number.
  GroupedStates& all = parts.front();
  std::vector<std::vector<std::uint32_t>> numbers(runs.size());
  for (std::size_t part = 1; part < parts.size() && all.outcome == Outcome::kDone; ++part) {
    GroupedStates& own = parts[part];
    all.outcome = own.outcome;
    if (own.outcome != Outcome::kDone) break;
    if (!dense.front().number(dense[part].keys(), numbers[part])) {
      all.outcome = Outcome::kTooMany;
      break;
    }
    all.groups = dense.front().groups();
    for (std::size_t i = 0; i < aggregates_.size(); ++i) {
      all.states[i].resize(all.groups);
      all.states[i].add(aggregates_[i].kind, own.states[i], numbers[part]);
    }
  }
  if (all.outcome != Outcome::kDone) return std::move(all);
  if (codes != nullptr) {
    share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      std::uint32_t next = 0;
      const bool same =
          std::ranges::all_of(numbers[at], [&](std::uint32_t number) { return number == next++; });
      if (same) return;
      for (std::uint32_t* code = codes + runs[at].row; code != codes + runs[at].end; ++code) {
        *code = numbers[at][*code];
      }
    });
  }
  all.keys = std::move(dense.front().keys());
  return std::move(all);
}

bool Program::evaluate(const ProgramRows& rows, std::span<const OutputColumn> outputs,
                       std::span<std::int64_t> nulls) const {
  std::fill(nulls.begin(), nulls.end(), 0);
  const std::vector<RowRun> runs = runs_of(rows);
  std::mutex mutex;
  std::atomic<bool> done = true;
  share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
    std::vector<std::int64_t> own(outputs.size());
    const auto& of_part = runs[static_cast<std::size_t>(part)];
    const bool all = run(rows, of_part, [&](Register* registers, std::int64_t row, std::int32_t count) {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        own[i] += store_rows(registers[outputs_[i]], outputs[i], row, count);
      }
      return true;
    });
    if (!all) done = false;
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < outputs.size(); ++i) nulls[i] += own[i];
  });
  return done;
}

std::int64_t Program::select(const ProgramRows& rows, std::int64_t* positions) const {
  const std::vector<RowRun> runs = runs_of(rows);
  std::vector<std::int64_t> counts(runs.size(), -1);
  share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    std::int64_t* const own = positions + runs[at].row;
    std::int64_t found = 0;
    const bool done = run(rows, runs[at], [&](Register* registers, std::int64_t row, std::int32_t count) {
      const auto& flags = registers[outputs_[0]].flags;  // those of null rows are 0
      for (std::int32_t i = 0; i < count; ++i) {
        own[found] = row + i;
        found += flags[static_cast<std::size_t>(i)];
      }
      return true;
    });
    if (done) counts[at] = found;
  });
  std::int64_t found = 0;
  for (std::size_t at = 0; at < runs.size(); ++at) {
    if (counts[at] < 0) return -1;
    const std::int64_t* const own = positions + runs[at].row;
    if (found < runs[at].row) std::copy(own, own + counts[at], positions + found);
    found += counts[at];
  }
  return found;
}

}  // namespace bamquery
