// Reads, writes and flushes by threads that wait for them: where io_uring is forbidden.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/native/executors/async_executor.hpp"

namespace bamquery {

/// `why` not by io_uring; `path()` says it.
std::unique_ptr<AsyncExecutor> make_thread_executor(std::uint32_t depth, std::string why);

}  // namespace bamquery
