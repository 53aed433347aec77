// What the threads that share a queue pair tell each other, as one block of bytes that can be moved.
#pragma once

#include "driver/core/atomics.hpp"
#include "driver/core/status.hpp"

namespace bamquery {

/// A slot's command. The slot belongs to who acquired it, except when quarantined.
enum class CommandState : uint32_t {
  kIdle,         ///< No command was issued since the slot was acquired.
  kPending,      ///< Issued; its completion has not come.
  kDone,         ///< Completed; the word has its status.
  kQuarantined,  ///< Given up by its holder: nobody's until its completion comes.
};

/// State of a slot's command, status, and tag as one word.
struct CommandWord {
  uint32_t word;

  BAMQUERY_CORE static constexpr CommandWord make(CommandState state, Status status, uint32_t tag) {
    return {static_cast<uint32_t>(state) | static_cast<uint32_t>(status.code) << 2 | tag << 16};
  }
  /// A wait for a command that was never issued fails.
  BAMQUERY_CORE static constexpr CommandWord idle(uint32_t tag) {
    return make(CommandState::kIdle, status::kInternalError, tag);
  }
  BAMQUERY_CORE constexpr CommandState state() const { return static_cast<CommandState>(word & 3); }
  BAMQUERY_CORE constexpr Status status() const { return {static_cast<uint16_t>(word >> 2 & 0x7ffu)}; }
  /// The command identifier without the slot's number: what the slot's last command has there.
  BAMQUERY_CORE constexpr uint32_t tag() const { return word >> 16; }
};

/// A command identifier is the slot's number in its low bits, and above, as far as 16 bits go, a tag that
/// counts the slot's commands: a completion that comes twice is not taken for the next command's. FFFFh,
/// which means no command, cannot come out, since there are fewer slots than places.
BAMQUERY_CORE constexpr uint32_t slot_of(uint16_t command_id, uint32_t depth) {
  return command_id & (depth - 1);
}
BAMQUERY_CORE constexpr uint32_t tag_of(uint16_t command_id, uint32_t depth) {
  return command_id & ~(depth - 1);
}
BAMQUERY_CORE constexpr uint32_t next_tag(uint32_t tag, uint32_t depth) { return (tag + depth) & 0xffffu; }

/// Counters run freely over 32 bits; a counter's low bits are its place in the ring, and the bit above them
/// gives the phase.
struct QueueHeader {
  uint32_t ticket;           ///< Next place of the submission ring to give out.
  uint32_t tail;             ///< First place that the controller was not told of. Under tail_lock.
  uint32_t tail_lock;        ///< 1: some thread moves the tail.
  uint32_t head;             ///< First completion not consumed. Under head_lock.
  uint32_t head_lock;        ///< 1: some thread consumes completions.
  uint32_t submission_head;  ///< First entry that the controller does not say it fetched. Under head_lock.
  uint32_t broken;           ///< 1: the controller broke the protocol.
  uint32_t notice;           ///< What the first thread of a block that leases the pair tells the others.
  // Statistics since the block was initialised.
  uint32_t doorbells;  ///< Rings of the tail doorbell. Under tail_lock.
  uint32_t errors;     ///< Completions with a status other than success. Under head_lock.
  uint32_t late;       ///< Completions of quarantined commands. Under head_lock.
  uint32_t missed;     ///< Commands that went into quarantine.
};
static_assert(sizeof(QueueHeader) == 48);

/// Where counters start: two rounds before they wrap, so that every run goes through the wrap.
BAMQUERY_CORE constexpr uint32_t first_counter(uint32_t depth) { return 0u - 2 * depth; }

/// The block: header, one mark a ring place, one word a slot, one bit a slot.
class QueueFlags {
 public:
  BAMQUERY_CORE QueueFlags(byte* base, uint32_t depth, uint32_t slots)
      : words_(reinterpret_cast<uint32_t*>(base)), depth_(depth), slots_(slots) {}

  /// Size of the block: a multiple of 16. It must lie on a multiple of 16.
  BAMQUERY_CORE static constexpr uint32_t bytes(uint32_t depth, uint32_t slots) {
    return (kHeaderWords + depth + slots + (slots + 31) / 32 + 3) / 4 * 16;
  }

  /// Makes a block whose slots are all free, for rings of zeros whose doorbells are zero.
  BAMQUERY_CORE void initialise() const {
    const uint32_t first = first_counter(depth_);
    header() = {};
    header().ticket = header().tail = header().head = header().submission_head = first;
    // As if the round before had been marked.
    for (uint32_t i = 0; i < depth_; ++i) mark(i) = marked(first + i - depth_);
    for (uint32_t slot = 0; slot < slots_; ++slot) command(slot) = CommandWord::idle(0).word;
    for (uint32_t i = 0; i < free_words(); ++i) free_slots(i) = 0xffffffffu;
    if (slots_ % 32 != 0) free_slots(slots_ / 32) = (1u << slots_ % 32) - 1;
  }

  BAMQUERY_CORE QueueHeader& header() const { return *reinterpret_cast<QueueHeader*>(words_); }

  /// marked(counter) once the entry for `counter` is written.
  BAMQUERY_CORE uint32_t& mark(uint32_t counter) const {
    return words_[kHeaderWords + (counter & (depth_ - 1))];
  }
  BAMQUERY_CORE static constexpr uint32_t marked(uint32_t counter) { return counter + 1; }

  /// A CommandWord.
  BAMQUERY_CORE uint32_t& command(uint32_t slot) const { return words_[kHeaderWords + depth_ + slot]; }

  /// Bit b of word i: slot 32 i + b is nobody's.
  BAMQUERY_CORE uint32_t& free_slots(uint32_t i) const { return words_[kHeaderWords + depth_ + slots_ + i]; }
  BAMQUERY_CORE uint32_t free_words() const { return (slots_ + 31) / 32; }

  BAMQUERY_CORE byte* base() const { return reinterpret_cast<byte*>(words_); }

 private:
  static constexpr uint32_t kHeaderWords = sizeof(QueueHeader) / 4;

  uint32_t* words_;
  uint32_t depth_;
  uint32_t slots_;
};

}  // namespace bamquery
