// Parts of dates.
#pragma once

#include "engine/native/pipeline/registers.hpp"

namespace bamquery {

/// Runs kYear, kMonth or kDay over `count` rows. False for a day beyond those that dates have.
bool run_calendar(const Instruction& step, Register* registers, std::int32_t count);

}  // namespace bamquery
