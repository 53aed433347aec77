// Comparisons, three-valued logic and choices of a program.
#pragma once

#include "engine/native/pipeline/registers.hpp"

namespace bamquery {

/// Runs an instruction of this kind over `count` rows.
void run_logic(const Instruction& step, Register* registers, std::int32_t count);

}  // namespace bamquery
