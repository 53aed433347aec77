// Patterns by the names that users give them.
#pragma once

#include <stdexcept>
#include <string>

#include "driver/core/bench/access_pattern.hpp"

namespace bamquery {

/// std::invalid_argument if there is no such pattern.
inline AccessOrder order_of(const std::string& name) {
  if (name == "sequential") return AccessOrder::kSequential;
  if (name == "random") return AccessOrder::kRandom;
  if (name == "zipf") return AccessOrder::kZipf;
  throw std::invalid_argument("no such pattern: " + name);
}

}  // namespace bamquery
