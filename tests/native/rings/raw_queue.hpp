// One queue pair, driven by hand.
#pragma once

#include <optional>
#include <span>

#include "tests/native/controller/controller_test.hpp"

namespace bamquery::test {

// Drives one queue pair by hand, entry by entry, as no well-behaved submitter would.
class RawQueue {
 public:
  explicit RawQueue(QueueShape wanted, int controller_threads = 0)
      : memory(wanted), controller(memory, threads(controller_threads)) {
    nsid = controller.add_namespace(Namespace::memory(kBytes, kBlock));
    controller.start();
  }

  std::byte* landing(std::uint32_t slot = 0) const {
    return memory.landing().data() + slot * memory.shape().slot_bytes;
  }
  std::span<std::byte> contents() const { return controller.find_namespace(nsid)->bytes(); }

  SubmissionEntry entry(Opcode opcode, std::uint64_t lba, std::uint32_t blocks) const {
    SubmissionEntry made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    made.command_id = 77;
    made.nsid = nsid;
    made.prp1 = reinterpret_cast<std::uint64_t>(landing());
    if (blocks * kBlock > 2 * kPrpPageBytes) {
      made.prp2 = reinterpret_cast<std::uint64_t>(memory.prp_lists().data());
    } else {
      made.prp2 = made.prp1 + kPrpPageBytes;
    }
    made.lba = lba;
    made.block_count = static_cast<std::uint16_t>(blocks - 1);
    return made;
  }

  void submit(const SubmissionEntry& made) {
    memory.submissions(0)[tail_] = made;
    tail_ = (tail_ + 1) % memory.shape().depth;
    ring(tail_);
  }
  void ring(std::uint32_t tail) {
    AtomicRef<std::uint32_t, Scope::kSystem>(*memory.tail_doorbell(0)).store(tail, kRelease);
  }

  // The next completion, if it is there.
  std::optional<Outcome> completion(bool consume = true) {
    CompletionEntry& place = memory.completions(0)[head_ % memory.shape().depth];
    const Outcome outcome{AtomicRef<std::uint64_t, Scope::kSystem>(place.outcome).load(kAcquire)};
    if (outcome.phase() != (head_ / memory.shape().depth % 2 == 0)) return std::nullopt;
    ++head_;
    if (consume) give_back();
    return outcome;
  }
  void give_back() {
    AtomicRef<std::uint32_t, Scope::kSystem>(*memory.head_doorbell(0))
        .store(head_ % memory.shape().depth, kRelease);
  }

  Outcome outcome() {
    std::optional<Outcome> found;
    await([&] {
      controller.service(0, 1'000'000);
      return (found = completion()).has_value();
    });
    return *found;
  }
  Status execute(const SubmissionEntry& made) {
    submit(made);
    const Outcome found = outcome();
    CHECK(found.command_id() == made.command_id && found.submission_queue() == 1);
    CHECK(found.submission_head() == tail_);
    return found.status();
  }
  Status execute(Opcode opcode, std::uint64_t lba, std::uint32_t blocks) {
    return execute(entry(opcode, lba, blocks));
  }

  static constexpr std::uint64_t kBytes = 1 << 20;
  static constexpr std::uint64_t kBlocks = kBytes / kBlock;

  QueueMemory memory;
  SoftwareController controller;
  std::uint32_t nsid = 0;

 private:
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;
};

}  // namespace bamquery::test
