// A namespace in memory behind the calls of a queue pair, for tests of what lies above queues.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "driver/core/nvme.hpp"
#include "driver/core/platform.hpp"

namespace bamquery {

/// Commands take effect one at a time. `answer` decides how each ends; what does not end in success has no
/// effect.
class FakeDrive {
 public:
  static constexpr uint32_t kBlockBytes = 512;

  explicit FakeDrive(uint64_t blocks) : bytes(blocks * kBlockBytes) {}

  Status execute(const Request& request, byte* landing) {
    const std::lock_guard lock(mutex_);
    const Status status = answer ? answer(request) : status::kSuccess;
    if (!status.ok()) return status;
    if ((request.lba + request.blocks) * kBlockBytes > bytes.size()) return status::kLbaOutOfRange;
    byte* const place = bytes.data() + request.lba * kBlockBytes;
    const size_t size = size_t{request.blocks} * kBlockBytes;
    if (request.opcode == Opcode::kRead) {
      std::memcpy(landing, place, size);
      reads.fetch_add(1);
    } else {
      std::memcpy(place, landing, size);
      writes.fetch_add(1);
    }
    return status;
  }

  /// Looks at the bytes while no command changes them.
  template <typename Look>
  void look(Look look) {
    const std::lock_guard lock(mutex_);
    look(bytes);
  }

  std::vector<byte> bytes;
  std::function<Status(const Request&)> answer;
  std::atomic<uint32_t> reads{0};
  std::atomic<uint32_t> writes{0};

 private:
  std::mutex mutex_;
};

/// What QueuePair offers, shared by all threads; a command is executed by who waits for it.
class FakeQueue {
 public:
  static constexpr uint32_t kSlots = 2;

  FakeQueue(FakeDrive& drive, uint32_t slot_bytes) : drive_(drive) {
    for (auto& landing : landings_) landing.resize(slot_bytes);
  }

  Status acquire_slot(Deadline deadline, uint32_t& slot) {
    do {
      for (slot = 0; slot < kSlots; ++slot) {
        if (!taken_[slot].exchange(true, std::memory_order_acquire)) return status::kSuccess;
      }
    } while (!deadline.passed());
    return status::kNoSlot;
  }
  void release_slot(uint32_t slot) { taken_[slot].store(false, std::memory_order_release); }
  template <typename Group>
  Status issue(Group, bool wanted, uint32_t slot, const Request& request) {
    if (wanted) requests_[slot] = request;
    return status::kSuccess;
  }
  template <typename Group>
  Status wait(Group, bool wanted, uint32_t slot, Deadline) {
    if (!wanted) return status::kSuccess;
    const Status status = drive_.execute(requests_[slot], landing(slot));
    if (status == status::kDeadlineMissed) release_slot(slot);  // As if the late completion had come.
    return status;
  }
  template <typename Group>
  uint32_t sweep(Group) {
    return 0;
  }
  byte* landing(uint32_t slot) { return landings_[slot].data(); }

 private:
  FakeDrive& drive_;
  std::array<std::atomic<bool>, kSlots> taken_{};
  std::array<Request, kSlots> requests_{};
  std::array<std::vector<byte>, kSlots> landings_;
};

}  // namespace bamquery
