// Runs a few threads through every interleaving of their steps, over the real code.
//
// Compile with BAMQUERY_EXPLORE defined, which makes each access through AtomicRef a step. Threads are fibers
// whose stacks and shared state are copied aside, so that one state is continued in every possible way, and
// told from others by all its bytes, so that each is continued once. What must hold: no require() fails, and
// from every state that can be reached some continuation ends all threads. So waiting in circles counts as
// what it is: fine as long as somebody can still end it.
//
// Steps are sequentially consistent; memory orders are for ThreadSanitizer and for reasoning. Threads may
// keep things on their stacks and in the state, nowhere else: no heap, no globals. A count of looks makes a
// waiting thread's states endless: wait with Backoff.
#pragma once

#if !defined(BAMQUERY_EXPLORE)
#error "compile with -DBAMQUERY_EXPLORE"
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/core/platform.hpp"
#include "tests/native/explore/fiber.hpp"

namespace bamquery::explore {

inline constexpr uint64_t kNever = ~uint64_t{0};  ///< A deadline that does not pass.
inline constexpr uint64_t kSoon = 1;  ///< A deadline that passes at any moment, if there is a clock.

/// What exploring found.
struct Report {
  std::string failure;  ///< Empty: all is well.
  std::string trace;    ///< The steps that lead there.
  std::size_t states = 0;
  std::size_t steps = 0;
};

struct Options {
  bool clock = false;  ///< Deadlines of kSoon pass, at any moment.
  std::size_t most_states = 20'000'000;
};

namespace detail {

struct Thread {
  explicit Thread(std::function<void()> body) : fiber(std::move(body)) {}

  Fiber fiber;
  std::uint32_t choices = 1;  // Ways in which the next step goes on.
  std::uint32_t chosen = 0;
};

struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  Thread* running = nullptr;
  bool clock = false;
  bool late = false;  // The clock's only move: from 0 to 1.
  std::string failure;
  const void* address = nullptr;  // What the running thread is about to touch.
  bool writes = false;
};
inline Machine machine;

inline void step(Thread& thread) {
  // What lies there is from another continuation, and would tell states apart as the parts of new frames that
  // are not set.
  constexpr std::size_t kStepBytes = 4 << 10;  // More than a step's calls add to the stack.
  std::memset(thread.fiber.stack_pointer() - kStepBytes, 0, kStepBytes);
  machine.running = &thread;
  thread.choices = 1;
  thread.fiber.resume();
  machine.running = nullptr;
}

struct Key {
  std::uint64_t low, high;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.low; }
};

// 128 bits of all bytes: two states with one key are not to be expected.
inline Key key_of(const std::vector<std::uint64_t>& words) {
  std::uint64_t low = 0x9e3779b97f4a7c15, high = 0xc2b2ae3d27d4eb4f;
  for (const std::uint64_t word : words) {
    low = (low ^ word) * 0xff51afd7ed558ccd;
    low ^= low >> 32;
    high = (high + word) * 0xc4ceb9fe1a85ec53;
    high ^= high >> 29;
  }
  return {low, high};
}

}  // namespace detail

/// Fails the exploration, with the steps that led here.
inline void require(bool holds, const char* what) {
  if (holds || !detail::machine.failure.empty()) return;
  detail::machine.failure = what;
}

/// Any number below `count`: all are tried.
inline std::uint32_t choose(std::uint32_t count) {
  detail::Thread& thread = *detail::machine.running;
  thread.choices = count;
  detail::machine.address = nullptr;
  Fiber::yield();
  return thread.chosen;
}

inline void access(const void* address, bool writes) {
  if (detail::machine.running == nullptr) return;
  detail::machine.address = address;
  detail::machine.writes = writes;
  Fiber::yield();
}

inline void pause() {}  // The next look is a step anyway.

/// What a model makes of a fence between memory and a device's registers.
inline void (*at_fence)() = nullptr;
inline void fence() {
  if (at_fence != nullptr) at_fence();
}

inline std::uint64_t now_ns() {
  if (detail::machine.clock) access(&detail::machine.late, false);
  return detail::machine.late ? 1 : 0;
}

/// Explores `threads` over a state that starts as `initial`. `at_end` looks at each state in which all
/// threads have ended. `forget` may overwrite parts of the state that nothing depends on, such as statistics,
/// so that states that differ only there count as one.
template <typename State>
class Explorer {
  static_assert(std::is_trivially_copyable_v<State>);

 public:
  using Thread = std::function<void(State&)>;

  Explorer(const State& initial, std::vector<Thread> threads, std::function<void(State&)> at_end,
           Options options = {}, std::function<void(State&)> forget = nullptr)
      : state_(std::make_unique<Padded>()),
        at_end_(std::move(at_end)),
        forget_(std::move(forget)),
        options_(options) {
    std::memset(static_cast<void*>(state_.get()), 0, sizeof(Padded));
    state_->state = initial;
    detail::machine = {};
    detail::machine.clock = options_.clock;
    for (Thread& thread : threads) {
      detail::machine.threads.push_back(std::make_unique<detail::Thread>(
          [run = std::move(thread), state = &state_->state] { run(*state); }));
    }
  }

  /// The state's place, for the views that threads use: fixed as long as the explorer lives. What is changed
  /// there before run() is part of where all interleavings start.
  State& state() { return state_->state; }

  Report run() {
    for (const auto& thread : detail::machine.threads) thread->fiber.start();
    Report report;
    visit(report);
    if (report.failure.empty()) find_stuck(report);
    report.states = parents_.size();
    report.steps = edges_.size();
    return report;
  }

 private:
  struct alignas(64) Padded {
    State state;
  };
  struct Step {
    std::uint32_t from, thread, chosen;
  };
  struct Frame {
    std::vector<std::uint64_t> image;
    std::uint32_t id, next_thread, next_choice;
  };

  static constexpr std::uint32_t kNone = 0xffffffffu;

  std::uint32_t clock_number() const { return static_cast<std::uint32_t>(detail::machine.threads.size()); }

  static void append(std::vector<std::uint64_t>& image, const void* from, std::size_t bytes) {
    const std::size_t at = image.size();
    image.resize(at + (bytes + 7) / 8, 0);
    std::memcpy(image.data() + at, from, bytes);
  }

  // All that the future depends on.
  std::vector<std::uint64_t> capture() {
    if (forget_) forget_(state_->state);
    std::vector<std::uint64_t> image;
    append(image, state_.get(), sizeof(Padded));
    image.push_back(detail::machine.late ? 1 : 0);
    for (const auto& thread : detail::machine.threads) {
      Fiber& fiber = thread->fiber;
      image.push_back(fiber.ended() ? 1 : 0);
      if (fiber.ended()) continue;
      image.push_back(fiber.stack_used());
      image.push_back(thread->choices);
      append(image, &fiber.registers(), sizeof fiber.registers());
      append(image, fiber.stack_pointer(), fiber.stack_used());
    }
    return image;
  }

  void restore(const std::vector<std::uint64_t>& image) {
    const std::uint64_t* at = image.data();
    const auto take = [&at](void* to, std::size_t bytes) {
      std::memcpy(to, at, bytes);
      at += (bytes + 7) / 8;
    };
    take(state_.get(), sizeof(Padded));
    detail::machine.late = *at++ != 0;
    for (const auto& thread : detail::machine.threads) {
      Fiber& fiber = thread->fiber;
      fiber.set_ended(*at++ != 0);
      if (fiber.ended()) continue;
      fiber.set_stack_used(*at++);
      thread->choices = static_cast<std::uint32_t>(*at++);
      take(&fiber.registers(), sizeof fiber.registers());
      take(fiber.stack_pointer(), fiber.stack_used());
    }
  }

  bool all_ended() const {
    return std::all_of(detail::machine.threads.begin(), detail::machine.threads.end(),
                       [](const auto& thread) { return thread->fiber.ended(); });
  }

  // The id of the state that the machine is in, and whether it is new.
  std::pair<std::uint32_t, bool> enter(const std::vector<std::uint64_t>& image, Step step) {
    const auto [place, fresh] =
        ids_.try_emplace(detail::key_of(image), static_cast<std::uint32_t>(parents_.size()));
    if (fresh) parents_.push_back(step);
    return {place->second, fresh};
  }

  void take_step(std::uint32_t thread, std::uint32_t chosen) {
    if (thread == clock_number()) {
      detail::machine.late = true;
      return;
    }
    detail::Thread& next = *detail::machine.threads[thread];
    next.chosen = chosen;
    detail::step(next);
  }

  void visit(Report& report) {
    std::deque<Frame> open;  // Nearest first, so that a failure's trace is as short as can be.
    std::vector<std::uint64_t> image = capture();
    first_image_ = image;
    enter(image, {kNone, 0, 0});
    open.push_back({std::move(image), 0, 0, 0});
    while (!open.empty()) {
      Frame& frame = open.front();
      restore(frame.image);
      std::uint32_t& thread = frame.next_thread;
      const auto can_step = [&] {
        if (thread == clock_number()) return options_.clock && !detail::machine.late && !all_ended();
        return !detail::machine.threads[thread]->fiber.ended();
      };
      while (thread <= clock_number() && !can_step()) ++thread;
      if (thread > clock_number()) {
        if (all_ended()) {
          ends_.push_back(frame.id);
          at_end_(state_->state);
          if (failed(report, {frame.id, kNone, 0})) return;
        }
        open.pop_front();
        continue;
      }
      const Step step{frame.id, thread, frame.next_choice};
      const bool fiber = thread != clock_number();
      if (fiber && ++frame.next_choice < detail::machine.threads[thread]->choices) {
        // The same thread again, another way.
      } else {
        ++thread;
        frame.next_choice = 0;
      }
      take_step(step.thread, step.chosen);
      if (failed(report, step)) return;
      image = capture();
      const auto [id, fresh] = enter(image, step);
      edges_.emplace_back(step.from, id);
      if (parents_.size() > options_.most_states) {
        report.failure = "more states than allowed: not explored to the end";
        return;
      }
      if (fresh) open.push_back({std::move(image), id, 0, 0});
    }
  }

  bool failed(Report& report, Step last) {
    if (detail::machine.failure.empty()) return false;
    report.failure = detail::machine.failure;
    detail::machine.failure.clear();
    report.trace = trace(last);
    return true;
  }

  // Walks back from the ends: what is not met can never end.
  void find_stuck(Report& report) {
    std::vector<std::uint32_t> first(parents_.size() + 1, 0);
    for (const auto& [from, to] : edges_) ++first[to + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> sources(edges_.size());
    std::vector<std::uint32_t> filled(first.begin(), first.end() - 1);
    for (const auto& [from, to] : edges_) sources[filled[to]++] = from;
    std::vector<bool> can_end(parents_.size(), false);
    std::vector<std::uint32_t> open = ends_;
    for (const std::uint32_t id : ends_) can_end[id] = true;
    while (!open.empty()) {
      const std::uint32_t id = open.back();
      open.pop_back();
      for (std::uint32_t i = first[id]; i < first[id + 1]; ++i) {
        if (can_end[sources[i]]) continue;
        can_end[sources[i]] = true;
        open.push_back(sources[i]);
      }
    }
    const auto stuck = std::find(can_end.begin(), can_end.end(), false);
    if (stuck == can_end.end()) return;
    report.failure = "stuck: from here no continuation ends all threads";
    report.trace = trace({static_cast<std::uint32_t>(stuck - can_end.begin()), kNone, 0});
  }

  // Repeats the way to a state, and the step `last` from there, and says what each step touches.
  std::string trace(Step last) {
    std::vector<Step> steps;
    if (last.thread != kNone) steps.push_back(last);
    for (Step step = parents_[last.from]; step.from != kNone; step = parents_[step.from])
      steps.push_back(step);
    std::reverse(steps.begin(), steps.end());
    // What a thread touches is known one step ahead, from its step before.
    std::vector<std::string> next(detail::machine.threads.size(), "starts");
    std::string text;
    restore(first_image_);
    for (const Step& step : steps) {
      text += step.thread == clock_number()
                  ? std::string("the clock moves on")
                  : "thread " + std::to_string(step.thread) + " " + next[step.thread];
      if (step.thread < clock_number() && detail::machine.threads[step.thread]->choices > 1) {
        text += " " + std::to_string(step.chosen);
      }
      text += '\n';
      take_step(step.thread, step.chosen);
      if (step.thread < clock_number()) next[step.thread] = describe(step.thread);
    }
    detail::machine.failure.clear();
    return text;
  }

  std::string describe(std::uint32_t thread) const {
    const detail::Machine& machine = detail::machine;
    if (machine.threads[thread]->fiber.ended()) return "has ended";
    if (machine.address == nullptr) return "chooses";
    if (machine.address == &machine.late) return "reads the clock";
    const auto offset =
        static_cast<const std::byte*>(machine.address) - reinterpret_cast<std::byte*>(state_.get());
    return (machine.writes ? "writes +" : "reads +") + std::to_string(offset);
  }

  std::unique_ptr<Padded> state_;
  std::function<void(State&)> at_end_;
  std::function<void(State&)> forget_;
  Options options_;
  std::vector<std::uint64_t> first_image_;
  std::unordered_map<detail::Key, std::uint32_t, detail::KeyHash> ids_;
  std::vector<Step> parents_;  // How each state was first reached.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace bamquery::explore
