// Conditions on packed columns of a file, all of them vector by vector: which rows pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/unset_vector.hpp"
#include "engine/native/keys/number_set.hpp"
#include "engine/native/pipeline/program.hpp"
#include "storage/native/packed/selecting/column_vectors.hpp"
#include "storage/native/packed/selecting/predicate.hpp"

namespace bamquery {

/// One condition: a comparison of one column's codes, a set that its numbers are looked up in, or a program
/// of several columns.
struct SelectionStep {
  std::vector<std::size_t> columns;       ///< A program's inputs, in order; of others the one.
  const Program* program = nullptr;       ///< Its first output is the condition.
  const NumberSet* set = nullptr;         ///< The column's numbers must be among these; null is not.
  PackedPredicate* predicate = nullptr;   ///< Where there is neither.
  std::span<const std::uint8_t> certain;  ///< Of each candidate vector, not 0 where all rows pass; or empty.
  std::span<const std::int64_t> string_bytes;  ///< Of what codes stand for, to be summed up; or empty.
};

/// What a step did.
struct StepCounts {
  std::int64_t rows_in = 0;
  std::int64_t rows_out = 0;
  std::int64_t string_bytes = 0;  ///< Of rows that it looked at.
};

/// Rows that are asked about: those of ascending vectors, or of these only some.
struct SelectionRows {
  std::span<const std::int64_t> vectors;
  const std::int64_t* rows = nullptr;  ///< Ascending row ids, all in the vectors; null: all of their rows.
  std::size_t count = 0;               ///< Of `rows`.
};

struct RowSelection {
  UnsetVector<std::int64_t> rows;  ///< Ids of those that pass; not set where nobody asks, or where all pass.
  std::int64_t count = 0;          ///< How many pass.
  bool all = false;                ///< Whether all do.
  std::vector<StepCounts> steps;
  std::int64_t failed = -1;  ///< Number of a program that cannot compute some row; nothing else is said then.
};

/// Columns that steps look at, and of which of them payloads are wanted later on.
struct SelectionColumns {
  const BlockFile& file;
  std::span<const StoredPackedColumn> columns;
  std::span<const bool> kept;
};

/// What was read of a column.
struct SelectedVectors {
  std::vector<std::int64_t> vectors;  ///< Their numbers.
  std::vector<std::int64_t> lengths;  ///< Bytes of each.
  UnsetVector<std::byte> payload;     ///< Of kept columns: end to end.
  ReadCounts counts;
  std::int64_t mismatch = -1;  ///< The first that does not have its checksum.
};

/// Takes steps in their order, each for rows that have passed those before: vectors without such are not read
/// for it. Runs of vectors are shared with free threads. `located`: whether ids are wanted; `reads` gets what
/// was read of each column.
///
/// Raises std::invalid_argument where parameters are impossible, or rows do not ascend or are in none of the
/// vectors.
RowSelection select_rows(const SelectionColumns& columns, std::span<const SelectionStep> steps,
                         const SelectionRows& rows, bool located, std::vector<SelectedVectors>& reads);

}  // namespace bamquery
