// An array with the queue pairs it is read through, for any thread of any launch.
#pragma once

#include "driver/core/array/array.hpp"
#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

/// In memory of the side that runs.
struct SharedArrayView {
  ArrayView array;
  QueuePoolView pool;  ///< With at least one shared pair.
};

}  // namespace bamquery
