// Statuses in words.
#pragma once

#include <string>

#include "driver/core/status.hpp"

namespace bamquery {

/// Such as "unrecovered read error"; the numbers of what has no name here.
std::string status_text(Status status);

}  // namespace bamquery
