#include "driver/native/nvme/doorbell_forwarder.hpp"

#include <algorithm>
#include <chrono>

#include "driver/core/atomics.hpp"

namespace bamquery {
namespace {

// Few enough that a command waits no longer than a drive takes, long enough that some come together.
constexpr std::uint64_t kHeldNs = 20'000;
// Long after any controller has looked at its shadows.
constexpr std::uint64_t kToldAgainNs = 2'000'000;
// Looks without work before the thread sleeps: some tens of microseconds.
constexpr std::uint32_t kSpins = 2000;
constexpr std::uint64_t kShortestSleepNs = 50'000;
constexpr std::uint64_t kLongestSleepNs = 1'000'000;

std::uint32_t load(std::uint32_t* doorbell) {
  // Acquire: the entries that a tail tells of.
  return AtomicRef<std::uint32_t, Scope::kSystem>(*doorbell).load(kAcquire);
}

}  // namespace

DoorbellForwarder::DoorbellForwarder(NvmeDrive& drive, QueueMemory& memory, std::uint16_t first_queue,
                                     ShadowDoorbells* shadows)
    : drive_(drive),
      memory_(memory),
      first_queue_(first_queue),
      shadows_(shadows),
      stride_(drive.limits().doorbell_stride),
      depth_(memory.shape().depth),
      pairs_(std::make_unique<Pair[]>(memory.shape().pairs())) {}

DoorbellForwarder::~DoorbellForwarder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    rouse_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool DoorbellForwarder::look(std::uint32_t number) {
  Pair& pair = pairs_[number];
  // Acquire and release: one after another they forward, and stop() waits for who is at it.
  if (pair.taken.exchange(true, std::memory_order_acquire)) return false;
  const bool told = !stopped_.load(std::memory_order_relaxed) && forward(number);
  pair.taken.store(false, std::memory_order_release);
  return told;
}

bool DoorbellForwarder::look() {
  bool told = false;
  for (std::uint32_t pair = 0; pair < memory_.shape().pairs(); ++pair) told |= look(pair);
  return told;
}

bool DoorbellForwarder::forward(std::uint32_t number) {
  Pair& pair = pairs_[number];
  const auto queue = static_cast<std::uint16_t>(first_queue_ + number);
  const std::uint32_t mask = depth_ - 1;
  const std::uint32_t tail = load(memory_.tail_doorbell(number));
  const std::uint32_t head = load(memory_.head_doorbell(number));
  const std::uint32_t new_tails = (tail - pair.seen_tail) & mask, new_heads = (head - pair.seen_head) & mask;
  pair.seen_tail += new_tails;
  pair.seen_head += new_heads;
  if (new_tails + new_heads == 0 && pair.waits_since == 0) return false;
  if (shadows_ != nullptr) return forward_shadows(pair, queue);
  return forward_all(pair, queue, pair.seen_tail, pair.seen_head);
}

bool DoorbellForwarder::forward_shadows(Pair& pair, std::uint16_t queue) {
  const std::uint32_t mask = depth_ - 1;
  bool told = false;
  // The controller writes what it wants to be told of, then looks at the shadow: if that look missed the
  // value that we have seen, or this very thread has stored, we see here what it wrote.
  fence_shadows();
  const auto tell = [&](std::uint32_t offset, std::uint32_t& before, std::uint32_t now) {
    if (before == now) return;
    if (needs_register(shadows_->event(offset), before & mask, now & mask)) {
      ring(offset, now);
      told = true;
    }
    before = now;
  };
  const std::uint32_t tail_offset = tail_doorbell_offset(queue, stride_);
  const bool moved = pair.tail != pair.seen_tail || pair.head != pair.seen_head;
  tell(tail_offset, pair.tail, pair.seen_tail);
  tell(head_doorbell_offset(queue, stride_), pair.head, pair.seen_head);
  if (pair.tail == pair.head) {  // nothing is in flight
    pair.waits_since = 0;
  } else if (moved || pair.waits_since == 0) {
    pair.waits_since = now_ns();
  } else if (now_ns() - pair.waits_since > kToldAgainNs) {
    pair.waits_since = now_ns();
    if (shadows_->event(tail_offset) != (pair.tail & mask)) {
      ring(tail_offset, pair.tail);
      told = true;
    }
  }
  return told;
}

bool DoorbellForwarder::forward_all(Pair& pair, std::uint16_t queue, std::uint32_t tail, std::uint32_t head) {
  const std::uint32_t more = tail - pair.tail, in_flight = pair.tail - head;
  const std::uint32_t taken = head - pair.head;
  if (more == 0 && taken < depth_ / 2) return false;
  if (more != 0 && more < in_flight / 2) {
    const std::uint64_t now = now_ns();
    if (pair.waits_since == 0) pair.waits_since = now;
    if (now - pair.waits_since < kHeldNs) return false;
  }
  pair.waits_since = 0;
  // Completions of all that was told of must have room, but for one place that tells full from empty.
  if (taken >= depth_ / 2 || tail - pair.head >= depth_) {
    pair.head = head;
    ring(head_doorbell_offset(queue, stride_), head);
  }
  if (more != 0) {
    pair.tail = tail;
    ring(tail_doorbell_offset(queue, stride_), tail);
  }
  return true;
}

void DoorbellForwarder::ring(std::uint32_t offset, std::uint32_t counter) {
  drive_.registers().ring(offset, counter & (depth_ - 1));
  writes_.fetch_add(1, std::memory_order_relaxed);  // A statistic.
}

void DoorbellForwarder::change_activity(int by) {
  const std::lock_guard lock(mutex_);
  activity_ += by;
  if (activity_ > 0 && !thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (by > 0) rouse_.notify_all();
}

void DoorbellForwarder::run() {
  std::uint32_t idle = 0;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (activity_ == 0) {
      rouse_.wait(lock);
      idle = 0;
      continue;
    }
    lock.unlock();
    if (look()) {
      idle = 0;
    } else {
      ++idle;
      if (idle < kSpins) pause(0);
    }
    lock.lock();
    if (idle >= kSpins && !ending_) {
      const std::uint64_t ns = std::min(kShortestSleepNs << std::min(idle - kSpins, 8u), kLongestSleepNs);
      rouse_.wait_for(lock, std::chrono::nanoseconds(ns));
    }
  }
}

void DoorbellForwarder::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  for (std::uint32_t pair = 0; pair < memory_.shape().pairs(); ++pair) {
    // Whoever is at it gets no more than this one look.
    while (pairs_[pair].taken.exchange(true, std::memory_order_acquire)) pause(100);
    pairs_[pair].taken.store(false, std::memory_order_release);
  }
}

void DoorbellForwarder::renew() {
  for (std::uint32_t number = 0; number < memory_.shape().pairs(); ++number) {
    Pair& pair = pairs_[number];
    while (pair.taken.exchange(true, std::memory_order_acquire)) pause(100);
    pair.tail = pair.head = pair.seen_tail = pair.seen_head = 0;
    pair.waits_since = 0;
    pair.taken.store(false, std::memory_order_release);
  }
  stopped_.store(false, std::memory_order_relaxed);
}

}  // namespace bamquery
