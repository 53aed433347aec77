// Every interleaving of a few threads and a controller over the real queue pair, at small sizes.
// Usage: explore_rings quick | long | NAME: explores those models, or that one; says what it found.

#include <cstdio>
#include <cstring>
#include <string>

#include "driver/core/queues/queue_pool.hpp"
#include "tests/native/explore/explore.hpp"

namespace {

using namespace bamquery;
using explore::Explorer;
using explore::kNever;
using explore::kSoon;
using explore::Options;
using explore::Report;
using explore::require;

constexpr uint32_t kMostDepth = 4;
constexpr uint32_t kMostCommands = 4;
constexpr uint32_t kSlotBytes = 512;
constexpr uint32_t kFlagsBytes = QueueFlags::bytes(kMostDepth, kMostDepth - 1);

// All that threads share, and what is remembered of what they did.
struct State {
  alignas(16) byte flags[kFlagsBytes];
  alignas(16) byte lease[2][kFlagsBytes];  // The flags of a leased pair, where its lessee has them.
  QueuePairView view;
  uint32_t free_pairs, retired_pairs;
  SubmissionEntry submissions[kMostDepth];
  SubmissionEntry arrived[kMostDepth];  // What of them a drive finds that is told by registers.
  CompletionEntry completions[kMostDepth];
  uint32_t tail_doorbell, head_doorbell;
  uint32_t landing[kMostDepth - 1];    // Stands for a slot's landing buffer.
  uint32_t owner[kMostDepth - 1];      // Who holds a slot: thread + 1.
  uint32_t in_flight[kMostDepth - 1];  // The controller may still write to the landing buffer.
  uint32_t executed[kMostCommands];    // By LBA.
  uint32_t finished[kMostCommands];    // Reported to the issuer, by LBA.
  uint32_t lost[kMostCommands];        // Reported to have missed the deadline, by LBA.
  uint32_t left;                       // Issuers that a sweeper works for.
};

QueuePairView view_of(State& state, uint32_t depth, uint32_t slots) {
  QueuePairView view{};
  view.submissions = state.submissions;
  view.completions = state.completions;
  view.tail_doorbell = &state.tail_doorbell;
  view.head_doorbell = &state.head_doorbell;
  view.landing = reinterpret_cast<byte*>(state.landing);
  view.flags = state.flags;
  view.depth = depth;
  view.slots = slots;
  view.slot_bytes = view.block_bytes = kSlotBytes;
  view.id = 1;
  return view;
}

using Pair = QueuePair<Scope::kDevice>;

uint32_t answer(uint64_t lba) { return 100 + static_cast<uint32_t>(lba); }

enum class Fault {
  kNone,
  kLost,       // The first command's completion never comes.
  kDuplicate,  // The first completion comes twice.
  kWrongHead,  // The first completion's SQHD is beyond the tail.
  kStranger,   // The first completion is of another submission queue.
};

// Fetches entries in order and completes them in any order, until it has completed `commands`.
void control(State& state, uint32_t depth, uint32_t commands, Fault fault = Fault::kNone,
             bool registers = false) {
  const AtomicRef<uint32_t, Scope::kSystem> tail_doorbell(state.tail_doorbell);
  const AtomicRef<uint32_t, Scope::kSystem> head_doorbell(state.head_doorbell);
  uint16_t held[kMostDepth] = {};
  uint64_t lbas[kMostDepth] = {};
  uint32_t holds = 0, fetched = 0, done = 0, posted = 0;
  while (done < commands) {
    if (fetched < commands) {  // After the last entry there is no need to look.
      const uint32_t tail = tail_doorbell.load(kAcquire);
      while ((fetched & (depth - 1)) != tail) {
        const SubmissionEntry* const ring = registers ? state.arrived : state.submissions;
        const SubmissionEntry& entry = ring[fetched & (depth - 1)];
        require(slot_of(entry.command_id, depth) < depth - 1, "an entry has a slot's number");
        require(entry.lba < kMostCommands, "an entry was written");
        require(entry.opcode == static_cast<uint8_t>(Opcode::kRead), "nothing that writes was issued");
        require(holds < depth - 1, "no more commands than places");
        held[holds] = entry.command_id;
        lbas[holds++] = entry.lba;
        ++fetched;
      }
    }
    if (holds == 0) continue;
    if (posted >= depth - 1) {  // Before, the ring cannot be full.
      if (((posted + 1) & (depth - 1)) == head_doorbell.load(kAcquire)) continue;
    }
    const uint32_t which = holds > 1 ? explore::choose(holds) : 0;
    const uint16_t command_id = held[which];
    const uint32_t slot = slot_of(command_id, depth);
    const uint64_t lba = lbas[which];
    held[which] = held[--holds];
    lbas[which] = lbas[holds];
    held[holds] = 0;  // What is over must not tell states apart.
    lbas[holds] = 0;
    const Fault now = done++ == 0 ? fault : Fault::kNone;
    require(state.in_flight[slot] != 0, "one command of a slot at a time");
    if (now == Fault::kLost) continue;
    state.landing[slot] = answer(lba);
    state.in_flight[slot] = 0;
    ++state.executed[lba];
    const uint32_t wrong = now == Fault::kWrongHead ? 1 : 0;
    const Outcome outcome =
        Outcome::make(static_cast<uint16_t>((fetched + wrong) & (depth - 1)), now == Fault::kStranger ? 7 : 1,
                      command_id, (posted & depth) == 0, status::kSuccess);
    const AtomicRef<uint64_t, Scope::kSystem> word(state.completions[posted & (depth - 1)].outcome);
    word.store(outcome.word, kRelease);
    ++posted;
    if (now == Fault::kDuplicate) {
      const AtomicRef<uint64_t, Scope::kSystem> again(state.completions[posted & (depth - 1)].outcome);
      again.store(outcome.word, kRelease);
      ++posted;
    }
  }
}

// Issues and waits, with a slot of its own for each command; the command's LBA is its number.
template <Scope kScope>
Status command(State& state, const QueuePair<kScope>& pair, uint32_t thread, uint32_t lba,
               uint64_t deadline) {
  uint32_t slot = 0;
  const Status taken = pair.acquire_slot({deadline}, slot);
  if (!taken.ok()) return taken;
  require(state.owner[slot] == 0, "a slot is one thread's");
  require(state.in_flight[slot] == 0, "a slot in quarantine is nobody's");
  state.owner[slot] = deadline == kNever ? thread + 1 : 0;  // Within wait() the slot may be lost.
  state.landing[slot] = 0;
  state.in_flight[slot] = 1;
  const Status issued = pair.issue(slot, {Opcode::kRead, 1, lba, 1});
  Status status = issued;
  if (issued.ok()) {
    status = pair.wait(slot, {deadline});
  } else {
    state.in_flight[slot] = 0;
  }
  require(state.owner[slot] == 0 || state.owner[slot] == thread + 1, "a slot stays its holder's");
  state.owner[slot] = 0;
  if (issued.ok() && loses_slot(status)) {
    ++state.lost[lba];
    return status;
  }
  if (status.ok()) {
    require(state.landing[slot] == answer(lba), "the answer is the command's");
    ++state.finished[lba];
  }
  pair.release_slot(slot);
  return status;
}

// A model's sizes.
struct Size {
  uint32_t issuers = 1;
  uint32_t each = 1;  // Commands of an issuer, one after another.
  uint32_t depth = 2;
  uint32_t slots = 1;

  uint32_t commands() const { return issuers * each; }
};

// Nothing is lost, nothing is done twice, and the pair is as good as new.
void check_end(const State& state, const Size& size) {
  for (uint32_t lba = 0; lba < kMostCommands; ++lba) {
    require(state.executed[lba] == (lba < size.commands() ? 1 : 0), "every command is executed once");
    require(state.finished[lba] + state.lost[lba] == state.executed[lba], "every command is reported once");
  }
  const QueueFlags flags(const_cast<byte*>(state.flags), size.depth, size.slots);
  require(flags.header().ticket == first_counter(size.depth) + size.commands(),
          "every ticket is a command's");
  require(flags.header().tail == flags.header().ticket, "no mark is left behind");
  require(flags.header().head == flags.header().ticket, "no completion is left behind");
  require(flags.free_slots(0) == (1u << size.slots) - 1, "all slots are free");
  require(flags.header().tail_lock == 0 && flags.header().head_lock == 0, "no lock is held");
  require(flags.header().broken == 0, "the queue is sound");
}

void forget_statistics(State& state) {
  for (byte* flags : {state.flags, state.lease[0], state.lease[1]}) {
    QueueHeader& header = *reinterpret_cast<QueueHeader*>(flags);
    header.doorbells = header.errors = header.late = header.missed = 0;
  }
}

State initial(const Size& size) {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  QueueFlags(state.flags, size.depth, size.slots).initialise();
  return state;
}

Pair pair_of(State& state, const Size& size) { return {view_of(state, size.depth, size.slots), state.flags}; }

void issue_each(State& state, const Size& size, uint32_t thread, uint64_t deadline = kNever) {
  const Pair pair = pair_of(state, size);
  for (uint32_t i = 0; i < size.each; ++i) {
    const Status status = command(state, pair, thread, thread * size.each + i, deadline);
    require(status.ok() || deadline != kNever, "without a deadline commands succeed");
  }
}

Explorer<State>::Thread issuer(const Size& size, uint32_t thread, uint64_t deadline = kNever) {
  return [=](State& state) { issue_each(state, size, thread, deadline); };
}

// Issuers that sweep for themselves, and a controller.
Report share(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) threads.push_back(issuer(size, thread));
  threads.push_back([=](State& state) { control(state, size.depth, size.commands()); });
  return Explorer<State>(
             initial(size), std::move(threads), [=](const State& state) { check_end(state, size); }, {},
             forget_statistics)
      .run();
}

// A thread that tells of two commands at once, beside one that tells of its own, and maybe of those.
Report batch(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  threads.push_back([=](State& state) {
    const Pair pair = pair_of(state, size);
    uint32_t slots[2] = {};
    for (uint32_t lba = 0; lba < 2; ++lba) {
      require(pair.acquire_slot({kNever}, slots[lba]).ok(), "a slot comes free");
      state.landing[slots[lba]] = 0;
      state.in_flight[slots[lba]] = 1;
      require(pair.issue(Silent{}, true, slots[lba], {Opcode::kRead, 1, lba, 1}).ok(), "commands are taken");
    }
    pair.ring_doorbell();
    for (uint32_t lba = 0; lba < 2; ++lba) {
      require(pair.wait(slots[lba], {kNever}).ok(), "without a deadline commands succeed");
      require(state.landing[slots[lba]] == answer(lba), "the answer is the command's");
      ++state.finished[lba];
      pair.release_slot(slots[lba]);
    }
  });
  for (uint32_t thread = 2; thread < size.issuers; ++thread) threads.push_back(issuer(size, thread));
  threads.push_back([=](State& state) { control(state, size.depth, size.commands()); });
  return Explorer<State>(
             initial(size), std::move(threads), [=](const State& state) { check_end(state, size); }, {},
             forget_statistics)
      .run();
}

// Issuers, and a thread that sweeps until they have ended.
Report sweep_for(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) {
    threads.push_back([=](State& state) {
      issue_each(state, size, thread);
      AtomicRef<uint32_t, Scope::kDevice>(state.left).fetch_sub(1, kRelease);
    });
  }
  threads.push_back([=](State& state) {
    const Pair pair = pair_of(state, size);
    while (AtomicRef<uint32_t, Scope::kDevice>(state.left).load(kAcquire) != 0) pair.sweep();
  });
  threads.push_back([=](State& state) { control(state, size.depth, size.commands()); });
  State state = initial(size);
  state.left = size.issuers;
  return Explorer<State>(
             state, std::move(threads), [=](const State& end) { check_end(end, size); }, {},
             forget_statistics)
      .run();
}

// The first issuer's deadline passes at any moment, before, while and after its command completes.
Report miss_deadline(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  threads.push_back([=](State& state) {
    // It has its slot in time.
    const Pair pair = pair_of(state, size);
    uint32_t slot = 0;
    require(pair.acquire_slot({kNever}, slot).ok(), "a slot comes free");
    require(state.owner[slot] == 0 && state.in_flight[slot] == 0, "a slot is one thread's");
    state.in_flight[slot] = 1;
    require(pair.issue(slot, {Opcode::kRead, 1, 0, 1}).ok(), "commands are taken");
    const Status status = pair.wait(slot, {kSoon});
    if (loses_slot(status)) {
      ++state.lost[0];
      return;
    }
    require(state.landing[slot] == answer(0), "the answer is the command's");
    ++state.finished[0];
    pair.release_slot(slot);
  });
  for (uint32_t thread = 1; thread < size.issuers; ++thread) threads.push_back(issuer(size, thread));
  threads.push_back([=](State& state) { control(state, size.depth, size.commands()); });
  return Explorer<State>(
             initial(size), std::move(threads),
             [=](State& state) {
               pair_of(state, size).sweep();  // A late completion may be there that nobody waited for.
               check_end(state, size);
             },
             {.clock = true}, forget_statistics)
      .run();
}

// One completion never comes: everybody ends by the deadline, and the slot stays in quarantine.
Report lose_completion(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) threads.push_back(issuer(size, thread, kSoon));
  const auto at_end = [=](const State& state) {
    const QueueFlags flags(const_cast<byte*>(state.flags), size.depth, size.slots);
    for (uint32_t slot = 0; slot < size.slots; ++slot) {
      const bool quarantined = CommandWord{flags.command(slot)}.state() == CommandState::kQuarantined;
      require(quarantined == ((flags.free_slots(0) >> slot & 1) == 0), "a slot is free or in quarantine");
      require(quarantined || state.in_flight[slot] == 0,
              "what the controller may write to stays in quarantine");
    }
    require(flags.header().broken == 0, "the queue is sound");
  };
  // The controller serves whoever still issues when the clock has moved on.
  threads.push_back([=](State& state) {
    const AtomicRef<uint32_t, Scope::kSystem> tail_doorbell(state.tail_doorbell);
    while (tail_doorbell.load(kAcquire) == 0) {
      if (explore::now_ns() != 0) return;
    }
    control(state, size.depth, 1, Fault::kLost);
  });
  return Explorer<State>(initial(size), std::move(threads), at_end, {.clock = true}, forget_statistics).run();
}

// The controller breaks the protocol: everybody ends, and the queue is known to be broken.
Report break_protocol(const Size& size, Fault fault) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) {
    threads.push_back([=](State& state) {
      const Pair pair = pair_of(state, size);
      const Status status = command(state, pair, thread, thread, kNever);
      require(status.ok() || status == status::kQueueBroken, "commands succeed until the queue is broken");
    });
  }
  threads.push_back([=](State& state) { control(state, size.depth, 1, fault); });
  const auto at_end = [=](State& state) {
    const Pair pair = pair_of(state, size);
    pair.sweep();  // Who had its answer did not look further.
    require(pair.broken(), "a broken queue is found out");
    uint32_t slot = 0;
    require(pair.acquire_slot({kNever}, slot) == status::kQueueBroken, "a broken queue gives out no slots");
  };
  return Explorer<State>(initial(size), std::move(threads), at_end, {}, forget_statistics).run();
}

// Two threads lease one pair in turn; with `late`, a lease may end before its command does.
Report lease(const Size& size, bool late) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < 2; ++thread) {
    threads.push_back([=](State& state) {
      QueuePoolView pool{};
      pool.pairs = &state.view;
      pool.free_pairs = &state.free_pairs;
      pool.retired_pairs = &state.retired_pairs;
      pool.leased_count = 1;
      pool.flags_bytes = QueueFlags::bytes(size.depth, size.slots);
      BlockLease lease(pool, state.lease[thread]);
      require(lease.begin({kNever}).ok(), "a pair comes free");
      const uint64_t deadline = late && thread == 0 ? kSoon : kNever;
      command(state, lease.pair(), thread, thread, deadline);
      require(lease.end({deadline}).ok(), "nothing is pending");
    });
  }
  threads.push_back([=](State& state) { control(state, size.depth, 2); });
  const auto at_end = [=](State& state) {
    require(state.free_pairs == 1 && state.retired_pairs == 0, "the pair is back");
    pair_of(state, size).sweep();
    check_end(state, size);
  };
  State state = initial(size);
  state.free_pairs = 1;
  Explorer<State> explorer(state, std::move(threads), at_end, {.clock = late}, forget_statistics);
  explorer.state().view = view_of(explorer.state(), size.depth, size.slots);
  return explorer.run();
}

// Issuers try to write through a pair that is for reading, and read with the same slot afterwards.
Report read_only(const Size& size) {
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) {
    threads.push_back([=](State& state) {
      QueuePairView view = view_of(state, size.depth, size.slots);
      view.read_only = 1;
      const Pair pair(view, state.flags);
      uint32_t slot = 0;
      require(pair.acquire_slot({kNever}, slot).ok(), "a slot comes free");
      require(pair.issue(slot, {Opcode::kWrite, 1, thread, 1}) == status::kReadOnly, "a write is refused");
      require(pair.wait(slot, {kNever}) == status::kReadOnly, "its wait says the same");
      state.in_flight[slot] = 1;
      require(pair.issue(slot, {Opcode::kRead, 1, thread, 1}).ok(), "a read is not");
      require(pair.wait(slot, {kNever}).ok() && state.landing[slot] == answer(thread), "it is answered");
      ++state.finished[thread];
      pair.release_slot(slot);
    });
  }
  threads.push_back([=](State& state) { control(state, size.depth, size.commands()); });
  return Explorer<State>(
             initial(size), std::move(threads), [=](const State& state) { check_end(state, size); }, {},
             forget_statistics)
      .run();
}

// A drive is told by registers: of what was stored since the last fence it finds nothing.
Report by_registers(const Size& size) {
  static State* shared = nullptr;
  explore::at_fence = [] { std::memcpy(shared->arrived, shared->submissions, sizeof shared->arrived); };
  std::vector<Explorer<State>::Thread> threads;
  for (uint32_t thread = 0; thread < size.issuers; ++thread) {
    threads.push_back([=](State& state) {
      shared = &state;
      QueuePairView view = view_of(state, size.depth, size.slots);
      view.registers = 1;
      const Pair pair(view, state.flags);
      for (uint32_t i = 0; i < size.each; ++i) {
        require(command(state, pair, thread, thread * size.each + i, kNever).ok(), "commands succeed");
      }
    });
  }
  threads.push_back([=](State& state) { control(state, size.depth, size.commands(), Fault::kNone, true); });
  const Report report = Explorer<State>(
                            initial(size), std::move(threads),
                            [=](const State& state) { check_end(state, size); }, {}, forget_statistics)
                            .run();
  explore::at_fence = nullptr;
  return report;
}

struct Model {
  const char* name;
  bool quick;
  std::function<Report()> explore;
};

const Model kModels[] = {
    {"one-command", true, [] { return share({1, 1, 2, 1}); }},
    {"once-round-the-ring", true, [] { return share({1, 3, 2, 1}); }},
    {"two-for-one-slot", true, [] { return share({2, 1, 2, 1}); }},
    {"two-round-the-ring", true, [] { return share({2, 2, 2, 1}); }},
    {"two-share", true, [] { return share({2, 1, 4, 3}); }},
    {"three-for-one-slot", true, [] { return share({3, 1, 2, 1}); }},
    {"batch", true, [] { return batch({2, 1, 4, 3}); }},
    {"batch-beside", false, [] { return batch({3, 1, 4, 3}); }},
    {"sweeper", true, [] { return sweep_for({1, 2, 2, 1}); }},
    {"sweeper-of-two", true, [] { return sweep_for({2, 1, 2, 1}); }},
    {"deadline", true, [] { return miss_deadline({1, 1, 2, 1}); }},
    {"deadline-and-next", true, [] { return miss_deadline({2, 1, 2, 1}); }},
    {"deadline-beside", true, [] { return miss_deadline({2, 1, 4, 2}); }},
    {"lost", true, [] { return lose_completion({1, 1, 2, 1}); }},
    {"lost-of-two", true, [] { return lose_completion({2, 1, 2, 1}); }},
    {"duplicate", true, [] { return break_protocol({1, 1, 2, 1}, Fault::kDuplicate); }},
    {"duplicate-of-two", true, [] { return break_protocol({2, 1, 2, 1}, Fault::kDuplicate); }},
    {"wrong-head", true, [] { return break_protocol({1, 1, 4, 3}, Fault::kWrongHead); }},
    {"stranger", true, [] { return break_protocol({1, 1, 2, 1}, Fault::kStranger); }},
    {"read-only", true, [] { return read_only({1, 1, 2, 1}); }},
    {"read-only-of-two", true, [] { return read_only({2, 1, 2, 1}); }},
    {"registers", true, [] { return by_registers({1, 2, 2, 1}); }},
    {"registers-of-two", true, [] { return by_registers({2, 1, 2, 1}); }},
    {"registers-shared", false, [] { return by_registers({2, 1, 4, 3}); }},
    {"lease", true, [] { return lease({2, 1, 2, 1}, false); }},
    {"lease-late", true, [] { return lease({2, 1, 2, 1}, true); }},
    {"three-share", false, [] { return share({3, 1, 4, 2}); }},
    {"duplicate-sharing", false, [] { return break_protocol({2, 1, 4, 3}, Fault::kDuplicate); }},
    {"lost-sharing", false, [] { return lose_completion({2, 1, 4, 3}); }},
    {"two-share-twice", false, [] { return share({2, 2, 4, 3}); }},
    {"sweeper-of-two-sharing", false, [] { return sweep_for({2, 1, 4, 3}); }},
    {"lease-sharing", false, [] { return lease({2, 1, 4, 2}, true); }},
};

}  // namespace

int main(int count, char** arguments) {
  const std::string wanted = count == 2 ? arguments[1] : "";
  bool any = false;
  for (const Model& model : kModels) {
    if (wanted != model.name && wanted != (model.quick ? "quick" : "long")) continue;
    any = true;
    const Report report = model.explore();
    std::printf("%s: %zu states, %zu steps\n", model.name, report.states, report.steps);
    std::fflush(stdout);
    if (report.failure.empty()) continue;
    std::fprintf(stderr, "%s: not true: %s\n%s", model.name, report.failure.c_str(), report.trace.c_str());
    return 1;
  }
  if (!any) std::fprintf(stderr, "usage: explore_rings quick | long | NAME\n");
  return any ? 0 : 2;
}
