// Kinds of values by their names in Python (bamquery.storage.format.storable_types.value_kind).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "storage/native/statistics.hpp"

namespace bamquery {

struct Kind {
  const char* name;
  ValueKind kind;
  std::int64_t width;  ///< Of minimum and maximum, in bytes.
};

inline constexpr Kind kKinds[] = {
    {"int8", ValueKind::kInt8, 1},       {"int16", ValueKind::kInt16, 2},
    {"int32", ValueKind::kInt32, 4},     {"int64", ValueKind::kInt64, 8},
    {"uint8", ValueKind::kUInt8, 1},     {"uint16", ValueKind::kUInt16, 2},
    {"uint32", ValueKind::kUInt32, 4},   {"uint64", ValueKind::kUInt64, 8},
    {"float32", ValueKind::kFloat32, 4}, {"float64", ValueKind::kFloat64, 8},
    {"int128", ValueKind::kInt128, 16},  {"bool", ValueKind::kBool, 1},
};

/// Raises std::invalid_argument, Python's ValueError, where there is no such kind.
inline const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  throw std::invalid_argument("no such kind of value: " + name);
}

}  // namespace bamquery
