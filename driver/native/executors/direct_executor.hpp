// Carries out a controller's commands past the page cache: by io_uring, or by threads where that is
// forbidden.
#pragma once

#include <cstdint>
#include <memory>

#include "driver/native/executors/async_executor.hpp"

namespace bamquery {

enum class DirectPath {
  kAny,      ///< io_uring where the machine allows it, else threads, and `path()` says why.
  kUring,    ///< io_uring; IoUringUnavailable where it is forbidden.
  kThreads,  ///< preadv and pwritev in threads of the process's pool.
};

std::unique_ptr<AsyncExecutor> make_direct_executor(std::uint32_t depth, DirectPath path = DirectPath::kAny);

}  // namespace bamquery
