// Arithmetic of a program: whole numbers that must fit 64 bits, and doubles.
#pragma once

#include "engine/native/pipeline/registers.hpp"

namespace bamquery {

/// Runs an instruction of this kind over `count` rows. False where a result does not fit; then nothing that
/// was computed means anything.
bool run_arithmetic(const Instruction& step, Register* registers, std::int32_t count);

}  // namespace bamquery
