// Columns that a program reads, as Arrow has them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/native/pipeline/packed_input.hpp"
#include "engine/native/pipeline/registers.hpp"
#include "storage/native/bitmap.hpp"
#include "storage/native/statistics.hpp"

namespace bamquery {

/// An Arrow column, whose `values` begin with its first row, but for bits, which begin `Bits::offset` bits
/// later; or a packed one.
struct InputColumn {
  ValueKind kind;
  const std::byte* values = nullptr;
  Bits bits{};  ///< Of a column of booleans.
  Bits valid{};
  PackedInput packed{};
  std::span<const std::int64_t> vectors{};  ///< Of a packed column: the vector that each batch is of.
  bool is_packed = false;
};

/// How rows come where columns are packed: in batches, each of which is of one vector.
struct Batches {
  std::span<const std::int64_t> counts;  ///< Rows of each, from 1 to 1,024.
  const std::int64_t*
      picks;  ///< Row ids, whose remainder by 1,024 is the place in the vector; null: all rows.
};

/// Puts rows [row, row + count) into a register: integers and decimals as words, floats as doubles, booleans
/// as flags. False where a decimal does not fit 64 bits.
bool load_rows(const InputColumn& column, std::int64_t row, std::int32_t count, Register& out);

}  // namespace bamquery
