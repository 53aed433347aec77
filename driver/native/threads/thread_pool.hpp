// Threads that wait for reads and writes, shared by all of the process.
#pragma once

#include <functional>

namespace bamquery {

/// Runs `work` soon, in a thread of the pool; it must not throw. False where no thread can be had at all:
/// then it was not taken. A forked child has a pool of its own.
bool run_in_pool(std::function<void()> work);

}  // namespace bamquery
