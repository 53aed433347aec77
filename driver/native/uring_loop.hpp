// The plain way to read a file by io_uring, with no queues in between: what benchmarks measure ours against.
#pragma once

#include <cstdint>
#include <string>

#include "access_pattern.hpp"

namespace bamquery {

struct UringLoopOptions {
  std::uint32_t block_bytes;  ///< A power of two of at least 512; each read is one block.
  std::uint32_t depth;        ///< Reads in flight.
  AccessOrder order;
  double seconds;
  std::uint64_t seed;
};

struct UringLoopResult {
  std::uint64_t reads;
  std::uint64_t bytes;
  double seconds;
  double cpu_seconds;  ///< Of the one thread that drove it.
};

/// Reads whole blocks of `path` past the page cache (O_DIRECT) for so long, from one thread. Throws
/// StorageError where the file cannot be read so, IoUringUnavailable where io_uring is forbidden.
UringLoopResult run_uring_loop(const std::string& path, const UringLoopOptions& options);

}  // namespace bamquery
