// What the host asks of the kernels of `bamquery bench block`, and what they count.
#pragma once

#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/platform.hpp"

namespace bamquery {

struct GpuBlockJob {
  AccessPattern pattern;
  uint64_t seed;         ///< Content of the backing; writes put that of seed + 1 there.
  uint64_t first_count;  ///< Operations of each lane in earlier launches, at most.
  uint64_t run_ns;       ///< How long to go on.
  uint64_t deadline_ns;  ///< After which a command is lost.
  double write_share;
  uint32_t block_bytes;  ///< A power of two of at least 512.
  uint32_t lba_bytes;
  uint32_t nsid;
  uint32_t sweep_nap_ns;  ///< How long the sweeping warp rests when nothing has arrived.
  uint32_t verify;
  uint32_t lanes;  ///< Of each warp that keep a command in flight: 1 to 32.
  uint32_t batch;  ///< Commands of a warp that end before it goes on: 1 to `lanes`.
};

struct GpuBlockTally {
  unsigned long long operations;
  unsigned long long wrong;   ///< Words of 16 bytes that are not what they should be.
  unsigned long long failed;  ///< Commands that did not succeed; the first is in the error record.
  unsigned long long counts;  ///< Operations that some lane began, at most: the next launch goes on there.
};

}  // namespace bamquery
