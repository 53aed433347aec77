// One thread block of many warps on a CPU, whose lanes diverge and meet at random, the same for a seed.
//
// Compile with BAMQUERY_WARPS and BAMQUERY_EXPLORE defined. Lanes are fibers; at accesses to shared words a
// lane lets others go on first, at times. That a lane waits for lanes of its warp which never come, or which
// do something else, is found out.
#pragma once

#if !defined(BAMQUERY_WARPS) || !defined(BAMQUERY_EXPLORE)
#error "compile with -DBAMQUERY_WARPS -DBAMQUERY_EXPLORE"
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "driver/core/platform.hpp"
#include "tests/native/check.hpp"
#include "tests/native/explore/fiber.hpp"

namespace bamquery::warps {

enum class Waits { kNot, kSync, kBallot, kBroadcast, kMatch, kBlock };

struct LaneFiber {
  explicit LaneFiber(std::function<void()> body) : fiber(std::move(body)) {}

  Fiber fiber;
  std::uint32_t thread = 0;
  Waits waits = Waits::kNot;
  std::uint32_t from = 0;
  std::uint64_t value = 0;  // What it brings, then what it gets.
};

class ThreadBlock {
 public:
  /// Runs `body(thread)` in so many threads, 32 to a warp, and `meanwhile` again and again beside them, until
  /// all have ended.
  void run(std::uint32_t threads, std::uint32_t seed, const std::function<void(std::uint32_t)>& body,
           const std::function<void()>& meanwhile) {
    random_.seed(seed);
    lanes_.clear();
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      lanes_.push_back(std::make_unique<LaneFiber>([thread, &body] { body(thread); }));
      lanes_.back()->thread = thread;
      lanes_.back()->fiber.start();
    }
    current_block_ = this;
    while (step()) {
      if (draw(16) == 0) meanwhile();
    }
    current_block_ = nullptr;
  }

  static ThreadBlock& current() { return *current_block_; }
  static bool in_lane() { return current_block_ != nullptr && current_block_->running_ != nullptr; }

  LaneFiber& lane() { return *running_; }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(lanes_.size()); }
  std::uint64_t now() const { return now_; }
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  void wait(Waits waits) {
    running_->waits = waits;
    Fiber::yield();
  }

 private:
  LaneFiber* of_warp(const LaneFiber& lane, std::uint32_t number) const {
    const std::uint32_t thread = lane.thread / 32 * 32 + number;
    return thread < lanes_.size() ? lanes_[thread].get() : nullptr;
  }

  // Lets one lane go on, or some that have met; false when all have ended.
  bool step() {
    ++now_;
    CHECK(now_ < kMostSteps);  // Else it goes on in circles.
    std::vector<LaneFiber*>&ready = ready_, &others = others_;
    for (auto* const list : {&ready, &others}) list->clear();
    for (const auto& lane : lanes_) {
      if (!lane->fiber.ended()) (lane->waits == Waits::kNot ? ready : others).push_back(lane.get());
    }
    if (ready.empty() && others.empty()) return false;
    bool moved = false;
    for (LaneFiber* lane : others) moved |= lane->waits == Waits::kBlock ? leave_block() : leave_warp(*lane);
    if (moved) return true;
    CHECK(!ready.empty());  // Else lanes wait for others that never come.
    running_ = ready[draw(static_cast<std::uint32_t>(ready.size()))];
    running_->fiber.resume();
    running_ = nullptr;
    return true;
  }

  // True if all of the lane's warp have come, which then get what they came for.
  bool leave_warp(LaneFiber& lane) {
    if (lane.waits == Waits::kNot) return false;  // Has left with another.
    std::uint64_t values[32];
    for (std::uint32_t i = 0; i < 32; ++i) {
      const LaneFiber* const other = of_warp(lane, i);
      CHECK(other != nullptr && !other->fiber.ended());
      if (other->waits == Waits::kNot || other->waits == Waits::kBlock) return false;  // It comes later.
      CHECK(other->waits == lane.waits);                                               // All do the same.
      values[i] = other->value;
    }
    const Waits waits = lane.waits;
    for (std::uint32_t i = 0; i < 32; ++i) {
      LaneFiber& other = *of_warp(lane, i);
      std::uint64_t result = waits == Waits::kBroadcast ? values[other.from] : 0;
      for (std::uint32_t k = 0; k < 32; ++k) {
        if (waits == Waits::kBallot && values[k] != 0) result |= 1u << k;
        if (waits == Waits::kMatch && values[k] == values[i]) result |= 1u << k;
      }
      other.value = result;
      other.waits = Waits::kNot;
    }
    return true;
  }

  bool leave_block() {
    for (const auto& lane : lanes_) {
      if (!lane->fiber.ended() && lane->waits != Waits::kBlock) return false;
    }
    for (const auto& lane : lanes_) lane->waits = Waits::kNot;
    return true;
  }

  static constexpr std::uint64_t kMostSteps = 5'000'000;

  inline static ThreadBlock* current_block_ = nullptr;

  std::vector<std::unique_ptr<LaneFiber>> lanes_;
  std::vector<LaneFiber*> ready_, others_;  // Of one step.
  LaneFiber* running_ = nullptr;
  std::mt19937 random_;
  std::uint64_t now_ = 0;
};

inline std::uint32_t lane() { return ThreadBlock::current().lane().thread % 32; }
inline std::uint32_t thread() { return ThreadBlock::current().lane().thread; }
inline std::uint32_t threads() { return ThreadBlock::current().threads(); }

inline std::uint64_t meet(Waits waits, std::uint64_t value, std::uint32_t from = 0) {
  LaneFiber& mine = ThreadBlock::current().lane();
  mine.value = value;
  mine.from = from;
  ThreadBlock::current().wait(waits);
  return mine.value;
}
inline void sync() { meet(Waits::kSync, 0); }
inline std::uint32_t ballot(bool yes) {
  return static_cast<std::uint32_t>(meet(Waits::kBallot, yes ? 1 : 0));
}
inline std::uint64_t broadcast(std::uint64_t value, std::uint32_t from) {
  return meet(Waits::kBroadcast, value, from);
}
inline std::uint32_t match(std::uint64_t value) {
  return static_cast<std::uint32_t>(meet(Waits::kMatch, value));
}
inline void sync_block() { ThreadBlock::current().wait(Waits::kBlock); }

}  // namespace bamquery::warps

namespace bamquery::explore {

inline void access(const void*, bool) {
  if (warps::ThreadBlock::in_lane() && warps::ThreadBlock::current().draw(4) == 0) Fiber::yield();
}
inline void pause() { Fiber::yield(); }
inline void fence() {}
/// Steps of the block.
inline std::uint64_t now_ns() {
  return warps::ThreadBlock::in_lane() ? warps::ThreadBlock::current().now() : 0;
}

}  // namespace bamquery::explore
