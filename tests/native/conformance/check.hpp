// A check by name, and what it is given.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/native/conformance/backend.hpp"

namespace bamquery::conformance {

/// What does not hold.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why a check has nothing to say of this backend.
class Skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A Failure where `condition` does not hold. What else is given is a std::string that says what was seen.
#define EXPECT(condition, ...)                                                                \
  do {                                                                                        \
    if (!(condition))                                                                         \
      bamquery::conformance::fail(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

[[noreturn]] inline void fail(const char* file, int line, const char* condition,
                              const std::string& seen = "") {
  const std::string path(file);
  throw Failure(path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) + ": not true: " + condition +
                (seen.empty() ? "" : " (" + seen + ")"));
}

struct Settings {
  std::uint64_t seed = 1;
  double effort = 1;                           ///< How often what is random is done.
  std::uint32_t rounds = 6;                    ///< Of stopping with commands in flight.
  std::uint64_t patience_ns = 20'000'000'000;  ///< For one command.
};

using Random = std::mt19937_64;

class Context {
 public:
  Context(Backend& backend, const Settings& settings)
      : backend_(backend), settings_(settings), limits_(backend.limits()), spaces_(backend.spaces()) {}

  const Settings& settings() const { return settings_; }
  const Limits& limits() const { return limits_; }
  const std::vector<Space>& spaces() const { return spaces_; }
  const Space& space() const { return spaces_.front(); }
  std::uint32_t block_bytes() const { return space().block_bytes; }

  Random random(std::uint64_t stream = 0) const { return Random(settings_.seed * 1000 + stream); }
  std::uint64_t times(double often) const {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(often * settings_.effort));
  }
  Deadline soon() const { return Deadline::in(settings_.patience_ns); }

  /// As many slots as `depth` allows, or `slots`; depth and slot_bytes no more than the backend has.
  QueueShape shape(std::uint32_t leased, std::uint32_t shared, std::uint32_t depth, std::uint32_t slot_bytes,
                   std::uint32_t slots = ~0u) const {
    QueueShape made;
    made.leased_pairs = leased;
    made.shared_pairs = shared;
    made.depth = std::min(depth, limits_.depth);
    made.slots = std::min(slots, made.depth - 1);
    made.slot_bytes = std::max(std::min(slot_bytes, limits_.transfer_bytes), block_bytes());
    made.block_bytes = block_bytes();
    return made;
  }

  std::unique_ptr<Session> open(const QueueShape& shape) const {
    if (shape.pairs() > limits_.pairs)
      throw Skipped("it has " + std::to_string(limits_.pairs) + " queue pairs");
    return backend_.open(shape);
  }

  /// The first block that may be written; kScratchBytes lie from there on.
  std::uint64_t scratch() const {
    if (!space().writable) throw Skipped("the namespace takes no writes");
    if ((space().blocks - space().patterned) * block_bytes() < kScratchBytes) {
      throw Skipped("the namespace has too few blocks to write to");
    }
    return space().patterned;
  }

  /// What the line of a check that holds says.
  std::string detail;

 private:
  Backend& backend_;
  Settings settings_;
  Limits limits_;
  std::vector<Space> spaces_;
};

struct Check {
  std::string name;
  std::function<void(Context&)> run;
};

/// Runs `work(i)` in so many threads, and throws what the first of them threw that did.
template <typename Work>
void in_threads(std::uint32_t count, Work work) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

/// All there are, in their order; each file has some.
std::vector<Check> all_checks();
std::vector<Check> transfer_checks();
std::vector<Check> ring_checks();
std::vector<Check> thread_checks();
std::vector<Check> status_checks();
std::vector<Check> client_checks();
std::vector<Check> array_checks();
std::vector<Check> cache_checks();
std::vector<Check> stop_checks();
std::vector<Check> space_checks();

}  // namespace bamquery::conformance
