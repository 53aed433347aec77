#include "uring_loop.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "aligned_buffer.hpp"
#include "errors.hpp"
#include "io_uring.hpp"
#include "open_file.hpp"

namespace bamquery {
namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t size_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) throw system_error(path, "cannot be examined");
  return status.st_size;
}

}  // namespace

UringLoopResult run_uring_loop(const std::string& path, const UringLoopOptions& options) {
  check_block_size(options.block_bytes);
  if (options.depth < 1 || !(options.seconds >= 0)) throw std::invalid_argument("depth and seconds");
  const OpenFile file(path, size_of(path), O_DIRECT);
  const auto blocks = static_cast<std::uint64_t>(file.size()) / options.block_bytes;
  if (blocks == 0) throw StorageError(path, "it is smaller than one block");
  const AlignedBuffer buffers =
      allocate_aligned(static_cast<std::size_t>(options.block_bytes) * options.depth);
  IoUring ring(options.depth);
  if (ring.capacity() < options.depth) throw std::invalid_argument("depth is more than io_uring allows");
  const AccessPattern pattern = AccessPattern::of(options.order, blocks, 1, options.seed, 1.0);
  std::uint64_t asked = 0;
  const auto ask = [&](std::uint64_t buffer) {
    const auto offset = static_cast<std::int64_t>(pattern.block(0, asked++) * options.block_bytes);
    ring.read(file.descriptor(), buffers.get() + buffer * options.block_bytes, options.block_bytes, offset,
              buffer);
  };
  UringLoopResult result{};
  const double cpu_start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
  const double start = clock_seconds(CLOCK_MONOTONIC);
  for (std::uint32_t buffer = 0; buffer < options.depth; ++buffer) ask(buffer);
  std::array<IoUring::Completion, 64> completions;
  for (bool over = false; ring.in_flight() > 0;) {
    ring.wait(1'000'000'000);
    const std::size_t count = ring.reap(completions);
    over = over || clock_seconds(CLOCK_MONOTONIC) - start >= options.seconds;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t got = completions[i].result;
      if (got != static_cast<std::int32_t>(options.block_bytes)) {
        file.throw_read_error(0, got < 0 ? -got : EIO);
      }
      ++result.reads;
      if (!over) ask(completions[i].tag);
    }
  }
  result.seconds = clock_seconds(CLOCK_MONOTONIC) - start;
  result.cpu_seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
  result.bytes = result.reads * options.block_bytes;
  return result;
}

}  // namespace bamquery
