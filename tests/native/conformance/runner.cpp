#include "tests/native/conformance/runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <stdexcept>

namespace bamquery::conformance {
namespace {

using Clock = std::chrono::steady_clock;

void say(const char* kind, const std::string& name, std::string detail) {
  std::replace(detail.begin(), detail.end(), '\n', ' ');
  std::printf("%s %s: %s\n", kind, name.c_str(), detail.c_str());
  std::fflush(stdout);  // A crash later leaves it.
}

/// Ends the program if it lives too long.
class Watchdog {
 public:
  Watchdog(std::string name, std::uint64_t ns)
      : thread_([this, name = std::move(name), ns] { watch(name, ns); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(const std::string& name, std::uint64_t ns) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return over_; })) return;
    say("FAIL", name, "not over after " + std::to_string(ns / 1'000'000'000) + " s; the program ends here");
    _exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

bool is_part(const std::vector<std::string>& parts, const std::string& name) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return name.find(part) != name.npos; });
}

/// True where it holds, or has nothing to say.
bool run_check(Backend& backend, const Options& options, const Check& check, const std::string& name) {
  const auto start = Clock::now();
  const auto took = [&] {
    if (!options.times) return std::string();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    char text[32];
    std::snprintf(text, sizeof text, " [%.3f s]", seconds.count());
    return std::string(text);
  };
  try {
    const Watchdog watchdog(name, options.check_ns);
    Context context(backend, options.settings);
    check.run(context);
    say("ok", name, context.detail + took());
    return true;
  } catch (const Skipped& reason) {
    say("skip", name, reason.what());
    return true;
  } catch (const std::exception& error) {
    say("FAIL", name, error.what() + took());
  }
  return false;
}

}  // namespace

bool take_option(Options& options, int argc, char** argv, int& at) {
  const std::string name = argv[at];
  if (name == "--times") return options.times = true;
  const std::vector<std::string> valued = {"--seed",     "--effort", "--rounds", "--patience",
                                           "--deadline", "--filter", "--without"};
  if (std::ranges::find(valued, name) == valued.end()) return false;
  if (at + 1 >= argc) throw std::invalid_argument(name + " takes a value");
  const std::string value = argv[++at];
  const auto nanoseconds = [&] { return static_cast<std::uint64_t>(std::stod(value) * 1e9); };
  if (name == "--seed") options.settings.seed = std::stoull(value);
  if (name == "--effort") options.settings.effort = std::stod(value);
  if (name == "--rounds") options.settings.rounds = static_cast<std::uint32_t>(std::stoul(value));
  if (name == "--patience") options.settings.patience_ns = nanoseconds();
  if (name == "--deadline") options.check_ns = nanoseconds();
  if (name == "--filter") options.filters.push_back(value);
  if (name == "--without") options.without.push_back(value);
  return true;
}

int run_checks(Backend& backend, const Options& options, const std::string& prefix) {
  int failures = 0;
  for (const Check& check : all_checks()) {
    const std::string name = prefix + check.name;
    if (!options.filters.empty() && !is_part(options.filters, name)) continue;
    if (is_part(options.without, name)) continue;
    failures += run_check(backend, options, check, name) ? 0 : 1;
  }
  return failures;
}

}  // namespace bamquery::conformance
