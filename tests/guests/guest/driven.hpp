// A drive of a guest under the project's own driver, for programs that check what it does.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "driver/native/errors.hpp"
#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/nvme/vfio/open_device.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "pattern.hpp"

namespace guests {

using namespace bamquery;

inline constexpr std::uint64_t kPatience = 20'000'000'000;

inline Deadline patience() { return Deadline::in(kPatience); }

inline std::shared_ptr<NvmeDrive> open_drive(const std::string& address, bool writable,
                                             vfio::Interface interface = vfio::Interface::kAutomatic) {
  return NvmeDrive::open(vfio::open_device(address, interface), {.writable = writable});
}

inline QueueShape shape_for(const NvmeDrive& drive, std::uint32_t depth, std::uint32_t slot_bytes) {
  QueueShape shape;
  shape.leased_pairs = shape.shared_pairs = 1;
  shape.depth = depth;
  shape.slots = std::min(depth - 1, 255u);
  shape.block_bytes = drive.namespaces().at(0).block_bytes;
  shape.slot_bytes = std::max(slot_bytes, shape.block_bytes);
  shape.doorbell_stride = drive.limits().doorbell_stride;
  return shape;
}

// Words of blocks from `lba` on that are not what the drive of this number holds at first.
inline std::size_t differences(std::uint64_t number, std::uint64_t lba, std::uint32_t block_bytes,
                               const std::vector<std::byte>& bytes) {
  std::size_t found = 0;
  const std::uint64_t words = block_bytes / 8;
  for (std::size_t i = 0; i < bytes.size() / 8; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + 8 * i, sizeof word);
    found += word != pattern(number, lba + i / words, i % words) ? 1 : 0;
  }
  return found;
}

inline std::string error_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline unsigned status_of(const auto& action) {
  try {
    action();
  } catch (const NvmeError& error) {
    return error.status().code;
  }
  return 0;
}

// A queue pair whose entries are written by hand, through the shared pair's rings.
class Raw {
 public:
  explicit Raw(std::shared_ptr<NvmeDrive> drive, std::uint32_t depth = 64, std::uint32_t slot_bytes = 4096)
      : memory(shape_for(*drive, depth, slot_bytes)), controller(drive, memory, DoorbellKind::kRegisters) {
    std::ranges::fill(memory.landing(), std::byte{0x77});
  }

  SubmissionEntry entry(std::uint8_t opcode, std::uint64_t lba, std::uint32_t blocks) const {
    SubmissionEntry made{};
    made.opcode = opcode;
    made.nsid = 1;
    made.prp1 = memory.bus(memory.landing().data());
    made.lba = lba;
    made.block_count = static_cast<std::uint16_t>(blocks - 1);
    return made;
  }

  void submit(const SubmissionEntry& made) {
    memory.submissions(0)[tail_] = made;
    memory.submissions(0)[tail_].command_id = static_cast<std::uint16_t>(tail_);
    tail_ = (tail_ + 1) % memory.shape().depth;
    AtomicRef<std::uint32_t, Scope::kSystem>(*memory.tail_doorbell(0)).store(tail_, kRelease);
  }

  // The status of the next completion; 0xffff: none came.
  unsigned execute(const SubmissionEntry& made, std::uint64_t ns = 3'000'000'000) {
    submit(made);
    const Deadline deadline = Deadline::in(ns);
    CompletionEntry& place = memory.completions(0)[head_ % memory.shape().depth];
    const bool phase = head_ / memory.shape().depth % 2 == 0;
    while (!deadline.passed()) {
      const Outcome outcome{AtomicRef<std::uint64_t, Scope::kSystem>(place.outcome).load(kAcquire)};
      if (outcome.phase() != phase) continue;
      ++head_;
      AtomicRef<std::uint32_t, Scope::kSystem>(*memory.head_doorbell(0))
          .store(head_ % memory.shape().depth, kRelease);
      return outcome.status().code;
    }
    return 0xffff;
  }

  bool untouched(std::size_t first = 0) const {
    return std::ranges::all_of(memory.landing().subspan(first),
                               [](std::byte each) { return each == std::byte{0x77}; });
  }

  QueueMemory memory;
  NvmeController controller;

 private:
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;
};

}  // namespace guests
