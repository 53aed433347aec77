// Random reads of 4 KiB of a block device by the kernel's io_uring, 63 at a time, past the page cache: what
// drives are read by without this project. Argument: the device.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "driver/core/platform.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/executors/io_uring.hpp"

namespace {

using namespace bamquery;
using guests::check;

constexpr std::uint32_t kDepth = 63;
constexpr std::uint32_t kBytes = 4096;

void measure(const char* device) {
  const int file = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (!check(file >= 0, "opened", "%s", device)) return;
  const auto memory = allocate_aligned(std::size_t{kDepth} * kBytes);
  IoUring ring(kDepth);
  std::vector<IoUring::Completion> completions(kDepth);
  std::mt19937 random(9);
  std::uint64_t done = 0, wrong = 0;
  const auto ask = [&](std::uint64_t place) {
    ring.read(file, memory.get() + place * kBytes, kBytes,
              static_cast<std::int64_t>(random() % 16000) * kBytes, place);
  };
  const std::uint64_t begin = now_ns();
  const Deadline end = Deadline::in(1'500'000'000);
  for (std::uint64_t place = 0; place < kDepth; ++place) ask(place);
  while (ring.in_flight() > 0) {
    ring.wait(100'000'000);
    const std::size_t count = ring.reap(completions);
    for (std::size_t i = 0; i < count; ++i) {
      wrong += completions[i].result == kBytes ? 0 : 1;
      ++done;
      if (!end.passed()) ask(completions[i].tag);
    }
  }
  const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  check(wrong == 0 && done > 100, "kernel-rate", "%.0f reads/s", static_cast<double>(done) / seconds);
  close(file);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    measure(arguments[1]);
  } catch (const std::exception& error) {
    check(false, "kernel-rate", "%s", error.what());
  }
  return 0;
}
