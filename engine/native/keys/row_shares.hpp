// How many threads look at the rows of keys.
#pragma once

#include <cstdint>

#include "driver/native/threads/shared_work.hpp"

namespace bamquery {

/// How many threads are worth it: each has a part of a millisecond's work at least, as waking one takes some
/// of that.
inline std::int64_t worth_shares(std::int64_t items) { return worth_parts(items, 1 << 15); }

}  // namespace bamquery
