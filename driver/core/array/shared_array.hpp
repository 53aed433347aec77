// An array with the queue pairs it is read through, for any thread of any launch.
#pragma once

#include "driver/core/array/array.hpp"
#include "driver/core/queues/drive_queues.hpp"

namespace bamquery {

/// In memory of the side that runs.
struct SharedArrayView {
  ArrayView array;
  const QueuePoolView* pools;  ///< Of each drive, with at least one shared pair, in the same memory.
  uint32_t drives;
  uint32_t reserved;
};

}  // namespace bamquery
