// Which rows of a register are null.
#pragma once

#include <algorithm>

#include "engine/native/pipeline/registers.hpp"

namespace bamquery {

inline void copy_validity(const Instruction& step, Register* registers, std::int32_t count) {
  const Register& a = registers[step.a];
  Register& out = registers[step.out];
  out.all_valid = a.all_valid;
  if (!a.all_valid) std::copy_n(a.valid.begin(), count, out.valid.begin());
}

/// Null where a or b is.
inline void join_validity(const Instruction& step, Register* registers, std::int32_t count) {
  const Register &a = registers[step.a], &b = registers[step.b];
  Register& out = registers[step.out];
  if (a.all_valid && b.all_valid) {
    out.all_valid = true;
    return;
  }
  const auto rows = static_cast<std::size_t>(count);
  if (a.all_valid || b.all_valid) {
    std::copy_n((a.all_valid ? b : a).valid.begin(), rows, out.valid.begin());
  } else {
    for (std::size_t i = 0; i < rows; ++i) out.valid[i] = a.valid[i] & b.valid[i];
  }
  out.all_valid = false;
}

/// From now on `valid` says which rows are null, even if none is.
inline void spread_validity(Register& found, std::int32_t count) {
  if (found.all_valid) std::fill_n(found.valid.begin(), count, std::uint8_t{1});
  found.all_valid = false;
}

/// 1 where a row is not null.
inline std::uint8_t is_valid(const Register& found, std::size_t row) {
  return found.all_valid ? 1 : found.valid[row];
}

inline void clear_null_words(Register& found, std::int32_t count) {
  if (found.all_valid) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    found.words[i] &= -static_cast<std::int64_t>(found.valid[i]);
  }
}

inline void clear_null_flags(Register& found, std::int32_t count) {
  if (found.all_valid) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) found.flags[i] &= found.valid[i];
}

}  // namespace bamquery
