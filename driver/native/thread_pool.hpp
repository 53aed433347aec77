// Threads that wait for reads and writes, shared by all of the process.
#pragma once

#include <cstdint>
#include <functional>

namespace bamquery {

/// Runs `work` soon, in a thread of the pool; it must not throw. False where no thread can be had at all:
/// then it was not taken. A forked child has a pool of its own.
bool run_in_pool(std::function<void()> work);

/// Runs work(task) for every task in [0, count), at most `width` at once, and returns when all are done. The
/// calling thread takes part, so there is progress even where no thread can be started. `work` must not
/// throw.
void run_parallel(int width, std::int64_t count, const std::function<void(std::int64_t)>& work);

}  // namespace bamquery
