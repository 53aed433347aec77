// A submission ring and a completion ring that many threads drive together.
#pragma once

#include "driver/core/nvme.hpp"
#include "driver/core/queues/queue_flags.hpp"
#include "driver/core/registers.hpp"

namespace bamquery {

/// Where a queue pair's parts are for the side that runs. A slot is the right to one place in both rings, a
/// landing buffer, and a command identifier with its number; there are fewer slots than places, so neither
/// ring can overflow.
struct QueuePairView {
  SubmissionEntry* submissions;  ///< Written here, read by the controller.
  CompletionEntry* completions;  ///< Written by the controller, read here.
  uint32_t* tail_doorbell;       ///< Of the submission ring.
  uint32_t* head_doorbell;       ///< Of the completion ring.
  byte* landing;                 ///< Slot s has slot_bytes at s * slot_bytes.
  uint64_t landing_bus;          ///< The same, as the controller addresses it.
  uint64_t prp_lists_bus;        ///< Slot s has its constant PRP list at s * prp_list_bytes.
  byte* flags;                   ///< QueueFlags in memory that outlives kernels; a lease works on a copy.
  uint32_t depth;                ///< Places of each ring: a power of two, 2 to 65,536.
  uint32_t slots;                ///< 1 to depth - 1.
  uint32_t slot_bytes;           ///< A power of two; no transfer is larger.
  uint32_t prp_list_bytes;       ///< 0 where no transfer needs a list.
  uint32_t block_bytes;          ///< LBA size of all the controller's namespaces.
  uint16_t id;                   ///< SQID and CQID
  uint8_t read_only;             ///< 1: nothing that writes to a namespace is issued.
  uint8_t registers;             ///< 1: the doorbells are a drive's registers, not in memory.
};

/// True if a command that ended so took its slot with it: it is quarantined, not its holder's any more.
BAMQUERY_CORE constexpr bool loses_slot(Status status) {
  return status == status::kDeadlineMissed || status == status::kQueueBroken;
}

/// What any thread of the scope may do with a queue pair. Lanes may diverge and leave at any time, except
/// that a slot's holder waits for its command, or abandons it.
///
/// Each call that can be made by a whole warp together takes a group, `Lanes::warp()` or `Lone{}`: a warp
/// looks at 32 completions at once, and rings one doorbell for 32 commands. Lanes that have nothing to do in
/// it
/// (`wanted` is false) still call. Without a group, a lane acts alone.
///
/// Landing buffers are read and written by the slot's holder, while no command of the slot is pending. What
/// the controller stored there before its completion is seen after wait(): the sweeper's acquire of the
/// completion at system scope, its release of the command word and the holder's acquire at kScope add up,
/// since causality order is transitive over scopes.
template <Scope kScope>
class QueuePair {
 public:
  /// `flags` has the pair's QueueFlags, in memory that kScope shares. With a thread that does nothing but
  /// sweep, `patience` is how many looks waiters leave the completion ring to it before they sweep as well.
  BAMQUERY_CORE QueuePair(const QueuePairView& view, byte* flags, uint32_t patience = 0)
      : view_(view), flags_(flags, view.depth, view.slots), patience_(patience) {}

  /// Takes a free slot. Looks at least once. kNoSlot at the deadline, kQueueBroken.
  BAMQUERY_CORE Status acquire_slot(Deadline deadline, uint32_t& slot) const {
    for (Backoff wait;; wait.pause()) {
      if (broken()) return status::kQueueBroken;
      if (take_free_slot(slot)) return status::kSuccess;
      if (wait.looks() >= patience_) sweep();  // A late completion may free one.
      if (take_free_slot(slot)) return status::kSuccess;
      if (deadline.passed()) return status::kNoSlot;
    }
  }

  /// Gives the caller's slot back; nothing of it may be pending.
  BAMQUERY_CORE void release_slot(uint32_t slot) const {
    const auto command = ref(flags_.command(slot));
    // Relaxed: ours until the bit is set, and through it the next holder's.
    const CommandWord word{command.load(kRelaxed)};
    command.store(CommandWord::idle(word.tag()).word, kRelaxed);
    free_slot(slot);
  }

  /// Starts a command of each lane's slot, of which none is pending. Returns at once; if not with success, no
  /// command was issued, the slot stays the caller's, and wait() says the same: kTooLarge for more than
  /// slot_bytes, kReadOnly for what may write where the pair is for reading, kInvalidField for a transfer of
  /// nothing or a flush of something, kQueueBroken.
  template <typename Group>
  BAMQUERY_CORE Status issue(Group group, bool wanted, uint32_t slot, const Request& request) const {
    const uint64_t bytes = static_cast<uint64_t>(request.blocks) * view_.block_bytes;
    const Status refused = wanted ? refusal(request, bytes) : status::kSuccess;
    uint32_t tag = 0;
    if (wanted) {
      const auto command = ref(flags_.command(slot));
      // Relaxed: the word is ours, and who completes the command hears of it from the controller, which hears
      // of it by the doorbell.
      tag = next_tag(CommandWord{command.load(kRelaxed)}.tag(), view_.depth);
      const CommandState state = refused.ok() ? CommandState::kPending : CommandState::kDone;
      command.store(CommandWord::make(state, refused, tag).word, kRelaxed);
    }
    const bool issues = wanted && refused.ok();
    const uint32_t issuers = group.ballot(issues);
    if (issuers == 0) return refused;
    uint32_t ticket = 0;
    if (group.leads()) {
      // Acquire and release: whoever takes a place after us knows what we know of the ring, so the one whose
      // turn it is at a place again knows that the controller has fetched the entry there.
      ticket = ref(flags_.header().ticket).fetch_add(bit_count(issuers), kAcquireRelease);
    }
    group.sync();  // What the leader acquired is to hold for all.
    ticket = group.broadcast(ticket) + count_before(issuers, group.rank());
    if (issues) {
      write_entry(view_.submissions[ticket & (view_.depth - 1)], slot, tag, request, bytes);
      // Release: the entry is written. Whoever moves the tail over it passes that on to the controller.
      ref(flags_.mark(ticket)).store(QueueFlags::marked(ticket), kRelease);
    }
    group.sync();
    if constexpr (Group::kRingsDoorbell) move_tail(group);
    return refused;
  }
  BAMQUERY_CORE Status issue(uint32_t slot, const Request& request) const {
    return issue(Lone{}, true, slot, request);
  }

  /// After issue() with the group Silent{}, and before any wait: the controller hears of all those commands.
  BAMQUERY_CORE void ring_doorbell() const { move_tail(Lone{}); }

  /// Waits for the commands of the lanes' slots and returns how each lane's ended; again for a command that
  /// has ended. At the deadline, or if the queue breaks, the slot is lost to the caller: see loses_slot().
  template <typename Group>
  BAMQUERY_CORE Status wait(Group group, bool wanted, uint32_t slot, Deadline deadline) const {
    Status status = status::kSuccess;
    bool pending = wanted;
    for (Backoff wait;; wait.pause()) {
      if (pending) pending = !try_wait(slot, status);
      if (!group.any(pending)) return status;
      if (wait.looks() < patience_) continue;
      sweep(group);
      if (!pending) continue;
      if (broken()) {
        status = abandon(slot, status::kQueueBroken);
        pending = false;
      } else if (deadline.passed()) {
        status = abandon(slot, status::kDeadlineMissed);
        pending = false;
      }
    }
  }
  BAMQUERY_CORE Status wait(uint32_t slot, Deadline deadline) const {
    return wait(Lone{}, true, slot, deadline);
  }

  /// One look: true if the slot's command has ended, with its status.
  BAMQUERY_CORE bool try_wait(uint32_t slot, Status& status) const {
    // Acquire: what the controller stored for the command is to be seen.
    const CommandWord word{ref(flags_.command(slot)).load(kAcquire)};
    status = word.status();
    return word.state() != CommandState::kPending;
  }

  /// Gives up the slot's command, if it is pending, and the slot with it: returns `reason`. Otherwise the
  /// slot stays the caller's: returns how the command ended.
  BAMQUERY_CORE Status abandon(uint32_t slot, Status reason) const {
    const auto command = ref(flags_.command(slot));
    CommandWord word{command.load(kAcquire)};  // Acquire, here and below: as in try_wait().
    if (word.state() == CommandState::kPending) {
      const CommandWord given_up = CommandWord::make(CommandState::kQuarantined, reason, word.tag());
      // Release: our use of the landing buffer is over before its next holder's.
      if (command.compare_exchange(word.word, given_up.word, kAcquireRelease)) {
        ref(flags_.header().missed).fetch_add(1, kRelaxed);  // A statistic.
        return reason;
      }
    }
    return word.status();
  }

  /// Consumes completions while there are any; returns how many, 0 also if somebody else is at it.
  template <typename Group>
  BAMQUERY_CORE uint32_t sweep(Group group) const {
    // All lanes or none: each looks for itself, and one that goes on alone would wait for the others.
    if (group.any(broken()) || !try_lock(flags_.header().head_lock, group)) return 0;
    const auto head_word = ref(flags_.header().head);  // Relaxed, as all that the lock keeps.
    const uint32_t first = head_word.load(kRelaxed);
    uint32_t head = first;
    bool sound = true;
    for (bool more = true; more && sound;) {
      const uint32_t mine = head + group.rank();
      const Outcome outcome = look(mine);
      const uint32_t run = group.run(outcome.phase() == phase(mine));
      if (run == 0) break;
      sound = deliver(group, run, outcome);
      head += run;
      more = run == group.count();
    }
    group.sync();  // Every lane has read its entries.
    if (group.leads()) {
      if (!sound) ref(flags_.header().broken).store(1, kRelaxed);  // It vouches for nothing.
      if (head != first) {
        head_word.store(head, kRelaxed);
        // Release: the entries are read before the controller may write there again.
        ring(*view_.head_doorbell, head);
      }
    }
    unlock(flags_.header().head_lock, group);
    return head - first;
  }
  BAMQUERY_CORE uint32_t sweep() const { return sweep(Lone{}); }

  /// Waits until nothing is pending. Nobody may issue meanwhile. At the deadline, or if the queue breaks,
  /// what is pending goes into quarantine: kDeadlineMissed, kQueueBroken.
  BAMQUERY_CORE Status drain(Deadline deadline) const {
    for (Backoff wait;; wait.pause()) {
      bool pending = false;
      for (uint32_t slot = 0; slot < view_.slots; ++slot) {
        Status status;
        pending |= !try_wait(slot, status);
      }
      if (!pending) return status::kSuccess;
      sweep();
      const Status reason = broken() ? status::kQueueBroken : status::kDeadlineMissed;
      if (!(reason == status::kQueueBroken) && !deadline.passed()) continue;
      bool lost = false;
      for (uint32_t slot = 0; slot < view_.slots; ++slot) {
        Status status;
        lost |= !try_wait(slot, status) && loses_slot(abandon(slot, reason));
      }
      if (lost) return reason;
    }
  }

  BAMQUERY_CORE byte* landing(uint32_t slot) const {
    return view_.landing + static_cast<size_t>(slot) * view_.slot_bytes;
  }

  /// The controller broke the protocol: nothing is issued or awaited any more.
  BAMQUERY_CORE bool broken() const {
    return ref(flags_.header().broken).load(kRelaxed) != 0;  // Relaxed: nothing hangs on it.
  }

  BAMQUERY_CORE const QueuePairView& view() const { return view_; }
  BAMQUERY_CORE const QueueFlags& flags() const { return flags_; }

 private:
  BAMQUERY_CORE static AtomicRef<uint32_t, kScope> ref(uint32_t& word) {
    return AtomicRef<uint32_t, kScope>(word);
  }
  // A release, at least.
  BAMQUERY_CORE void ring(uint32_t& doorbell, uint32_t counter) const {
    const uint32_t place = counter & (view_.depth - 1);
    if (view_.registers != 0) {
      store_register(doorbell, place);
    } else {
      AtomicRef<uint32_t, Scope::kSystem>(doorbell).store(place, kRelease);
    }
  }

  BAMQUERY_CORE Status refusal(const Request& request, uint64_t bytes) const {
    if (bytes > view_.slot_bytes) return status::kTooLarge;
    if (view_.read_only != 0 && request.opcode != Opcode::kRead && request.opcode != Opcode::kFlush) {
      return status::kReadOnly;
    }
    if ((bytes == 0) != (request.opcode == Opcode::kFlush)) return status::kInvalidField;
    return broken() ? status::kQueueBroken : status::kSuccess;
  }

  // Acquire: what the former holder did. Release: see unlock().
  template <typename Group>
  BAMQUERY_CORE static bool try_lock(uint32_t& lock, Group group) {
    uint32_t before = 0;
    if (group.leads()) before = ref(lock).exchange(1, kAcquireRelease);
    group.sync();  // What the leader acquired is to hold for all.
    return group.broadcast(before) == 0;
  }

  // Release: what we did under the lock. Acquire: what those did, before they tried, who could not lock.
  template <typename Group>
  BAMQUERY_CORE static void unlock(uint32_t& lock, Group group) {
    group.sync();
    if (group.leads()) ref(lock).exchange(0, kAcquireRelease);
    group.sync();
  }

  // One look at each word of free bits. Warps begin at different words and lanes take different bits, so that
  // those who come at once seldom want the same.
  BAMQUERY_CORE bool take_free_slot(uint32_t& slot) const {
    const uint32_t words = flags_.free_words();
    const uint32_t first = BlockThreads::rank() / 32 % words;
    for (uint32_t i = 0; i < words; ++i) {
      const uint32_t at = first + i < words ? first + i : first + i - words;
      const auto word = ref(flags_.free_slots(at));
      // Relaxed: a hint.
      for (uint32_t seen = word.load(kRelaxed); seen != 0; seen = word.load(kRelaxed)) {
        uint32_t rest = seen;
        for (uint32_t n = Lanes::lane() % bit_count(seen); n != 0; --n) rest &= rest - 1;
        const uint32_t bit = rest & (0u - rest);
        // Acquire: the former holders' use of the landing buffer is over.
        if ((word.fetch_and(~bit, kAcquire) & bit) != 0) {
          slot = 32 * at + lowest_bit(bit);
          return true;
        }
      }
    }
    return false;
  }

  BAMQUERY_CORE void free_slot(uint32_t slot) const {
    // Release: our use of the landing buffer is over before the next holder's begins.
    ref(flags_.free_slots(slot / 32)).fetch_or(1u << slot % 32, kRelease);
  }

  BAMQUERY_CORE void write_entry(SubmissionEntry& place, uint32_t slot, uint32_t tag, const Request& request,
                                 uint64_t bytes) const {
    SubmissionEntry entry{};
    entry.opcode = static_cast<uint8_t>(request.opcode);
    entry.command_id = static_cast<uint16_t>(tag | slot);
    entry.nsid = request.nsid;
    if (bytes != 0) {
      entry.prp1 = view_.landing_bus + static_cast<uint64_t>(slot) * view_.slot_bytes;
      if (bytes > 2 * kPrpPageBytes) {
        entry.prp2 = view_.prp_lists_bus + static_cast<uint64_t>(slot) * view_.prp_list_bytes;
      } else if (bytes > kPrpPageBytes) {
        entry.prp2 = entry.prp1 + kPrpPageBytes;
      }
      entry.lba = request.lba;
      entry.block_count = static_cast<uint16_t>(request.blocks - 1);
    }
    for (size_t at = 0; at < sizeof entry; at += 16) {
      copy_vector(reinterpret_cast<byte*>(&place) + at, reinterpret_cast<const byte*>(&entry) + at);
    }
  }

  // Tells the controller of all entries that are marked without a gap.
  template <typename Group>
  BAMQUERY_CORE void move_tail(Group group) const {
    const auto tail_word = ref(flags_.header().tail);  // Relaxed, as all that the lock keeps.
    bool more = true;
    while (more) {
      // Who holds the lock looks again after unlocking, and then sees the marks that we set before we tried:
      // both are exchanges of one word.
      if (!try_lock(flags_.header().tail_lock, group)) return;
      const uint32_t first = tail_word.load(kRelaxed);
      uint32_t tail = first;
      for (uint32_t run = group.count(); run == group.count(); tail += run) {
        run = group.run(is_marked(tail + group.rank()));
      }
      group.sync();  // What all lanes acquired is to hold for the leader.
      if (group.leads() && tail != first) {
        tail_word.store(tail, kRelaxed);
        count(flags_.header().doorbells, 1);
        // Release: entries are written before the controller may fetch them.
        ring(*view_.tail_doorbell, tail);
      }
      unlock(flags_.header().tail_lock, group);
      more = group.any(is_marked(tail));
    }
  }

  BAMQUERY_CORE bool is_marked(uint32_t counter) const {
    // Acquire: the entry is written.
    return ref(flags_.mark(counter)).load(kAcquire) == QueueFlags::marked(counter);
  }

  BAMQUERY_CORE Outcome look(uint32_t counter) const {
    uint64_t& word = view_.completions[counter & (view_.depth - 1)].outcome;
    // Acquire: what the controller stored before, the landing buffer above all.
    return {AtomicRef<uint64_t, Scope::kSystem>(word).load(kAcquire)};
  }

  // The phase tag of a completion with that counter: 1 on the ring's first round.
  BAMQUERY_CORE bool phase(uint32_t counter) const { return (counter & view_.depth) == 0; }

  // Raises the words of the first `run` lanes' commands; false if any of their completions cannot be.
  template <typename Group>
  BAMQUERY_CORE bool deliver(Group group, uint32_t run, Outcome outcome) const {
    QueueHeader& header = flags_.header();
    const bool mine = group.rank() < run;
    const uint32_t fetched = ref(header.submission_head).load(kRelaxed);
    const uint32_t tail =
        ref(header.tail).load(kRelaxed);  // As new as the completion: by way of the doorbell.
    const uint32_t step = (outcome.submission_head() - fetched) & (view_.depth - 1);
    const bool plausible = outcome.submission_queue() == view_.id &&
                           slot_of(outcome.command_id(), view_.depth) < view_.slots &&
                           outcome.submission_head() < view_.depth && step <= tail - fetched;
    bool late = false;
    const bool sound = !mine || (plausible && complete(outcome, late));
    const uint32_t errors = group.ballot(mine && !outcome.status().ok());
    const uint32_t late_ones = group.ballot(late);
    if (group.rank() == run - 1) {
      ref(header.submission_head).store(fetched + step, kRelaxed);
      count(header.errors, bit_count(errors));
      count(header.late, bit_count(late_ones));
    }
    return group.all(sound);
  }

  // False if no such command is outstanding.
  BAMQUERY_CORE bool complete(Outcome outcome, bool& late) const {
    const uint32_t slot = slot_of(outcome.command_id(), view_.depth);
    const uint32_t tag = tag_of(outcome.command_id(), view_.depth);
    CommandWord seen = CommandWord::make(CommandState::kPending, status::kSuccess, tag);
    const CommandWord done = CommandWord::make(CommandState::kDone, outcome.status(), tag);
    // Release: what the controller stored is to be seen by the slot's holder.
    if (ref(flags_.command(slot)).compare_exchange(seen.word, done.word, kAcquireRelease)) return true;
    late = seen.state() == CommandState::kQuarantined && seen.tag() == tag;
    if (late) release_slot(slot);
    return late;
  }

  // A statistic that a lock keeps; relaxed, for who reads it meanwhile.
  BAMQUERY_CORE static void count(uint32_t& statistic, uint32_t more) {
    if (more != 0) ref(statistic).store(ref(statistic).load(kRelaxed) + more, kRelaxed);
  }

  QueuePairView view_;
  QueueFlags flags_;
  uint32_t patience_;
};

}  // namespace bamquery
