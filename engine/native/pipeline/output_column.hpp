// Columns that a program writes.
#pragma once

#include "engine/native/pipeline/program.hpp"

namespace bamquery {

/// Stores rows [0, count) of a register as rows from `row` on. Returns how many are null. Words must fit the
/// column's kind.
std::int64_t store_rows(const Register& found, const OutputColumn& column, std::int64_t row,
                        std::int32_t count);

}  // namespace bamquery
