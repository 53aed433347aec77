// Programs, checked once and run over any number of chunks, by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/native/pipeline/aggregate.hpp"
#include "engine/native/pipeline/input_column.hpp"
#include "engine/native/pipeline/instruction.hpp"

namespace bamquery {

/// What instruction operands and inputs are: words or flags.
enum class Shape : std::uint8_t { kWords, kFlags };

/// A column that a program writes, as Arrow has it; null `values`: nothing is written.
struct OutputColumn {
  ValueKind kind;
  std::byte* values;
  std::uint8_t* bitmap;  ///< A bit a row, whether it is not null.
};

/// Rows that a program is run over.
struct ProgramRows {
  std::span<const InputColumn> columns;
  std::int64_t rows;
  const Batches* batches = nullptr;  ///< Where columns are packed; else rows come 1,024 at a time.
};

/// Rows that instructions are about at once.
struct RowBatch {
  std::size_t number;         ///< Of packed columns: `InputColumn::vectors` has the vector.
  std::int64_t row;           ///< The first, of columns that are not packed.
  std::int32_t count;         ///< From 1 to 1,024.
  const std::int64_t* picks;  ///< As in `Batches`, of these rows.
};

/// A key in each group: null, or a word; flags are 0 and 1.
struct GroupKeys {
  std::vector<std::int64_t> words;
  std::vector<std::uint8_t> valid;
};

/// What came of rows that a program has grouped by its outputs.
struct GroupedStates {
  enum class Outcome : std::uint8_t {
    kDone,
    kFailed,   ///< A number does not fit.
    kTooMany,  ///< Keys are not small numbers.
  };
  Outcome outcome;
  std::int64_t groups = 0;
  std::vector<GroupKeys> keys;
  std::vector<AggregateState> states;
};

class DenseGroups;
class ProgramRun;

/// Some of the rows that a program is run over, by one thread: whole batches.
struct RowRun {
  std::size_t batch;  ///< The number of the first.
  std::int64_t row;   ///< Its first row.
  std::int64_t end;   ///< Behind the last one's.
};

class Program {
 public:
  /// Raises std::invalid_argument where an instruction reads what was not written before, is of the wrong
  /// shape, writes over what it reads, or is none. `inputs`: kinds of the columns that will be given.
  Program(std::span<const Instruction> steps, std::span<const ValueKind> inputs,
          std::span<const AggregateStep> aggregates, std::span<const std::uint16_t> outputs);

  std::span<const ValueKind> inputs() const { return inputs_; }
  std::span<const AggregateStep> aggregates() const { return aggregates_; }
  /// What each output register holds.
  std::span<const Shape> outputs() const { return output_shapes_; }

  /// The states of the aggregates of `rows` rows. `codes` (null: all are group 0) are below `groups`. Empty
  /// where the program fails: a number does not fit.
  std::vector<AggregateState> aggregate(const ProgramRows& rows, const std::uint32_t* codes,
                                        std::int64_t groups) const;

  /// The same by groups that the outputs tell apart, numbered as they first appear; `codes`, unless it is
  /// null, gets each row's.
  GroupedStates group(const ProgramRows& rows, std::uint32_t* codes) const;

  /// Writes output registers as columns, and how many rows of each are null. False where the program fails.
  bool evaluate(const ProgramRows& rows, std::span<const OutputColumn> outputs,
                std::span<std::int64_t> nulls) const;

  /// Writes the rows whose first output, flags, is true, to `positions`, which has room for all, and returns
  /// their number; -1 where the program fails.
  std::int64_t select(const ProgramRows& rows, std::int64_t* positions) const;

 private:
  friend class ProgramRun;

  template <typename Sink>
  bool run(const ProgramRows& rows, const RowRun& part, Sink&& sink) const;
  GroupedStates group(const ProgramRows& rows, const RowRun& part, DenseGroups& dense,
                      std::uint32_t* codes) const;
  void require_shape(std::uint32_t index, Shape shape) const;

  std::vector<Instruction> constants_;  // once a run
  std::vector<Instruction> steps_;      // once a vector
  std::vector<ValueKind> inputs_;
  std::vector<AggregateStep> aggregates_;
  std::vector<std::uint16_t> outputs_;
  std::vector<Shape> output_shapes_;
  std::uint32_t registers_ = 0;
  std::vector<std::uint8_t> written_;  // while it is checked: 0, or 1 + the register's shape
};

/// A program and its registers, run batch by batch by one thread.
class ProgramRun {
 public:
  /// `program` must outlive it.
  explicit ProgramRun(const Program& program);

  /// Computes a batch of columns; false where the program fails.
  bool next(std::span<const InputColumn> columns, const RowBatch& batch);

  const Register& output(std::size_t index) const { return registers_[program_.outputs_[index]]; }
  Register* registers() { return registers_.get(); }

 private:
  const Program& program_;
  std::unique_ptr<Register[]> registers_;
};

}  // namespace bamquery
