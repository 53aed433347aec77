// What the programs that test the software controller share.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "driver/core/bench/content.hpp"
#include "driver/native/controller/software_controller.hpp"
#include "driver/native/queues/serviced_pair.hpp"
#include "tests/native/conformance/pairs.hpp"

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

namespace bamquery::test {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint32_t kBlock = 512;

inline Deadline in_seconds(std::uint64_t seconds) { return Deadline::in(seconds * kSecond); }

/// Waits for what other threads must bring about.
inline void await(const std::function<bool()>& done) {
  const Deadline deadline = in_seconds(60);
  for (std::uint32_t tries = 0; !done(); ++tries) {
    CHECK(!deadline.passed());
    pause(tries);
  }
}

inline std::string make_file(const std::string& path, std::size_t bytes, unsigned char fill) {
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const std::string contents(bytes, static_cast<char>(fill));
  CHECK(file >= 0 && write(file, contents.data(), bytes) == static_cast<ssize_t>(bytes));
  CHECK(fsync(file) == 0 && close(file) == 0);
  return path;
}

inline QueueShape shape(std::uint32_t pairs, std::uint32_t depth, std::uint32_t slot_bytes) {
  QueueShape found;
  found.leased_pairs = pairs;
  found.shared_pairs = 0;
  found.depth = depth;
  found.slots = depth - 1;
  found.slot_bytes = slot_bytes;
  return found;
}

inline ControllerOptions threads(int count) {
  ControllerOptions options;
  options.threads = count;
  return options;
}

inline FaultRule rule(FaultKind kind) {
  FaultRule made;
  made.kind = kind;
  return made;
}

// ThreadSanitizer's runtime does not survive a jump out of a SIGBUS handler.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kSurvivesTruncation = false;
#else
inline constexpr bool kSurvivesTruncation = true;
#endif

using conformance::Pool;

/// A leased pair of a pool, had within a minute or not at all.
struct Lease : conformance::Lease {
  Lease(const Pool& pool, SoftwareController& controller)
      : conformance::Lease(pool, controller, in_seconds(60)) {}
};

/// What happens to a controller while clients are at it. controller_load.cpp
void under_load(const std::string& folder);

/// Randomised: all kinds of faults, through the real rings, for so long. controller_stress.cpp
void stress(const std::string& folder, std::uint64_t seed, double seconds);

}  // namespace bamquery::test
