// A controller for tests of the rings: executes commands out of nothing, and misbehaves as told.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "driver/native/queues/queue_memory.hpp"
#include "tests/native/check.hpp"

namespace bamquery {

/// What reads of an LBA return and writes of it must bring: the 64-bit word at `offset` of its block.
inline std::uint64_t block_word(std::uint64_t lba, std::uint32_t offset) {
  return (lba + 1) * 0x9e3779b97f4a7c15 + offset;
}

/// The same numbers for the same seed.
class Random {
 public:
  explicit Random(std::uint32_t seed) : bits_(seed) {}
  std::uint32_t next() { return static_cast<std::uint32_t>(bits_()); }
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(bits_() % limit); }

 private:
  std::mt19937 bits_;
};

/// Queue pairs in the memory of this process.
class Rings {
 public:
  explicit Rings(const QueueShape& shape)
      : memory(shape), storage_(memory.pool_bytes() + 128), pool(memory.make_pool(aligned())) {}

  QueueMemory memory;

 private:
  std::span<std::byte> aligned() {
    void* at = storage_.data();
    std::size_t space = storage_.size();
    return {static_cast<std::byte*>(std::align(128, memory.pool_bytes(), at, space)), memory.pool_bytes()};
  }

  std::vector<std::byte> storage_;

 public:
  QueuePoolView pool;
};

/// Chances are in 1,000, drawn by LBA.
struct RingFaults {
  std::uint32_t error = 0;  ///< A status other than success: see status_of().
  std::uint32_t lost = 0;   ///< The completion never comes, and the command is not executed.
  std::uint32_t late = 0;   ///< Executed and completed only after release_late().
};

/// What becomes of the commands for an LBA.
enum class Fate { kDone, kFailed, kLost, kLate };

inline Fate fate_of(const RingFaults& faults, std::uint64_t lba) {
  const auto draw = static_cast<std::uint32_t>(block_word(lba, 0) >> 40) % 1000;
  if (draw < faults.error) return Fate::kFailed;
  if (draw < faults.error + faults.lost) return Fate::kLost;
  if (draw < faults.error + faults.lost + faults.late) return Fate::kLate;
  return Fate::kDone;
}

inline Status status_of(std::uint64_t lba) {
  return lba % 2 ? status::kUnrecoveredRead : status::kLbaOutOfRange;
}

class RingController {
 public:
  explicit RingController(QueueMemory& memory, RingFaults faults = {}, std::uint32_t seed = 1)
      : memory_(memory), faults_(faults), random_(seed), queues_(memory.shape().pairs()) {
    for (Queue& queue : queues_) queue.phase = true;
  }
  ~RingController() { stop(); }

  /// A look at each queue: fetches what is there and completes some of it, in any order.
  void step() {
    for (std::uint32_t pair = 0; pair < queues_.size(); ++pair) step(pair);
  }

  void step(std::uint32_t pair) {
    fetch(pair);
    Queue& queue = queues_[pair];
    std::size_t most = queue.held.empty() ? 0 : 1 + random_.below(queue.held.size());
    while (most-- != 0 && room(pair)) {
      const std::size_t which = reorder ? random_.below(queue.held.size()) : 0;
      const SubmissionEntry entry = queue.held[which];
      queue.held.erase(queue.held.begin() + static_cast<std::ptrdiff_t>(which));
      finish(pair, entry);
    }
    if (!late_released_.load(std::memory_order_relaxed))
      return;  // Relaxed: acted upon at a later look as well.
    while (!queue.late.empty() && room(pair)) {
      execute(queue.late.back());
      post(pair, queue.late.back(), status::kSuccess);
      queue.late.pop_back();
    }
  }

  void start() {
    thread_ = std::thread([this] {
      while (!stop_.load(std::memory_order_relaxed)) {  // Relaxed: join() orders what follows.
        step();
        std::this_thread::yield();
      }
    });
  }
  void stop() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }

  /// Completions of a queue that never come.
  std::uint32_t lost(std::uint32_t pair) const {
    return queues_[pair].lost.load(std::memory_order_relaxed);  // Relaxed: nothing hangs on it.
  }

  void release_late() { late_released_.store(true, std::memory_order_relaxed); }

  /// Fetched entries of a queue that have not been completed, oldest first. Not while the thread runs.
  std::vector<SubmissionEntry>& held(std::uint32_t pair) {
    fetch(pair);
    return queues_[pair].held;
  }

  /// A completion, whatever it says; `head` is added to the SQHD.
  void post(std::uint32_t pair, const SubmissionEntry& entry, Status status, std::uint32_t head = 0,
            std::uint16_t id = 0, std::uint16_t queue_id = 0) {
    Queue& queue = queues_[pair];
    const std::uint32_t depth = memory_.shape().depth;
    const Outcome outcome =
        Outcome::make(static_cast<std::uint16_t>((queue.head + head) % depth),
                      static_cast<std::uint16_t>(memory_.queue_id(pair) + queue_id),
                      static_cast<std::uint16_t>(entry.command_id + id), queue.phase, status);
    const AtomicRef<std::uint64_t, Scope::kSystem> word(memory_.completions(pair)[queue.tail].outcome);
    word.store(outcome.word, kRelease);  // Release: the data is there before its completion.
    queue.tail = (queue.tail + 1) % depth;
    if (queue.tail == 0) queue.phase = !queue.phase;
  }

  /// Moves the data of a read or a write.
  void execute(const SubmissionEntry& entry) {
    if (entry.opcode == static_cast<std::uint8_t>(Opcode::kFlush)) return;
    const std::uint32_t block_bytes = memory_.shape().block_bytes;
    for (std::uint32_t block = 0; block <= entry.block_count; ++block) {
      for (std::uint32_t offset = 0; offset < block_bytes; offset += 8) {
        std::byte* const place = byte_of(entry, std::uint64_t{block} * block_bytes + offset);
        std::uint64_t word = block_word(entry.lba + block, offset);
        if (entry.opcode == static_cast<std::uint8_t>(Opcode::kRead)) {
          std::memcpy(place, &word, sizeof word);
        } else {
          std::uint64_t brought;
          std::memcpy(&brought, place, sizeof brought);
          CHECK(brought == word);
        }
      }
    }
  }

  bool reorder = true;

 private:
  struct Queue {
    std::uint32_t head = 0, tail = 0;  // Of the submission and the completion ring, as places.
    bool phase = true;
    std::vector<SubmissionEntry> held, late;
    std::atomic<std::uint32_t> lost{0};
  };

  void fetch(std::uint32_t pair) {
    Queue& queue = queues_[pair];
    const AtomicRef<std::uint32_t, Scope::kSystem> doorbell(*memory_.tail_doorbell(pair));
    const std::uint32_t tail = doorbell.load(kAcquire);  // Acquire: the entries are written.
    CHECK(tail < memory_.shape().depth);
    for (; queue.head != tail; queue.head = (queue.head + 1) % memory_.shape().depth) {
      queue.held.push_back(memory_.submissions(pair)[queue.head]);
      CHECK(queue.held.size() + queue.late.size() < memory_.shape().depth);
    }
  }

  bool room(std::uint32_t pair) {
    const AtomicRef<std::uint32_t, Scope::kSystem> doorbell(*memory_.head_doorbell(pair));
    // Acquire: the host has read what is overwritten now.
    const std::uint32_t used = queues_[pair].tail - doorbell.load(kAcquire);
    return (used & (memory_.shape().depth - 1)) + 1 < memory_.shape().depth;
  }

  void finish(std::uint32_t pair, const SubmissionEntry& entry) {
    const bool flush = entry.opcode == static_cast<std::uint8_t>(Opcode::kFlush);
    const Fate fate = flush ? Fate::kDone : fate_of(faults_, entry.lba);
    if (fate == Fate::kLost) {
      queues_[pair].lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (fate == Fate::kLate) {
      queues_[pair].late.push_back(entry);
      return;
    }
    if (fate == Fate::kDone) execute(entry);
    post(pair, entry, fate == Fate::kFailed ? status_of(entry.lba) : status::kSuccess);
  }

  // Where a byte of a command's data is, by its PRPs.
  std::byte* byte_of(const SubmissionEntry& entry, std::uint64_t at) {
    const std::uint64_t offset = entry.prp1 % kPrpPageBytes;
    const std::uint64_t bytes = (std::uint64_t{entry.block_count} + 1) * memory_.shape().block_bytes;
    const std::uint64_t pages = (offset + bytes + kPrpPageBytes - 1) / kPrpPageBytes;
    const std::uint64_t page = (offset + at) / kPrpPageBytes;
    std::uint64_t bus = entry.prp1 + at;
    if (page != 0) {
      std::uint64_t base = entry.prp2;
      if (pages > 2) {
        const std::uint64_t* const list = memory_.prp_list_at(entry.prp2, pages - 1);
        CHECK(list != nullptr);
        base = list[page - 1];
      }
      CHECK(base % kPrpPageBytes == 0);
      bus = base + (offset + at) % kPrpPageBytes;
    }
    std::byte* const place = memory_.landing_at(bus, 8);
    CHECK(place != nullptr);
    return place;
  }

  QueueMemory& memory_;
  RingFaults faults_;
  Random random_;
  std::vector<Queue> queues_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> late_released_{false};
};

}  // namespace bamquery
