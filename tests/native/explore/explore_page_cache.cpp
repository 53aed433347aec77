// Every interleaving of a few threads over the real page cache, at small sizes.
// Usage: explore_page_cache quick | long | NAME: explores those models, or that one; says what it found.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "driver/core/page_cache/page_cache.hpp"
#include "tests/native/explore/explore.hpp"

namespace {

using namespace bamquery;
using explore::Explorer;
using explore::kNever;
using explore::Report;
using explore::require;

constexpr uint32_t kMostSlots = 2;
constexpr uint32_t kPages = 8;   // With two buckets, 2, 6 and 7 are in one, the others in the other.
constexpr uint32_t kBytes = 16;  // A page is a block, and as small as can be copied.
const Lanes kAlone = Lanes::warp();

// All that threads share, and what is remembered of what they did.
struct State {
  alignas(64) byte memory[kMostSlots * (kBytes + kPageMetadataBytes) +
                          PageCacheView::kStripes * sizeof(CacheCounters) + 64];
  PageCacheView cache;
  ErrorRecord errors;
  uint64_t drive[kPages][2];
  alignas(16) uint64_t landing[2];
  uint32_t command_slot;  // There is one: 1 if it is taken.
  uint32_t reads[kPages];
  uint32_t writes[kPages];
  uint32_t failures;  // Commands that may still fail,
  Opcode failing;     // of this kind.
  bool tears;         // Writers write one word each.
};

uint64_t content(uint64_t page) { return 100 + page; }

// Of a queue pair what the cache sees: commands take effect at some moment between issue and wait.
class ModelQueue {
 public:
  explicit ModelQueue(State& state) : state_(state) {}

  Status acquire_slot(Deadline, uint32_t& slot) {
    slot = 0;
    return AtomicRef<uint32_t, Scope::kDevice>(state_.command_slot).exchange(1, kAcquire) == 0
               ? status::kSuccess
               : status::kNoSlot;
  }
  void release_slot(uint32_t) { AtomicRef<uint32_t, Scope::kDevice>(state_.command_slot).store(0, kRelease); }
  byte* landing(uint32_t) { return reinterpret_cast<byte*>(state_.landing); }
  template <typename Group>
  Status issue(Group, bool wanted, uint32_t, const Request& request) {
    if (!wanted) return status::kSuccess;
    page_ = request.lba;
    reads_ = request.opcode == Opcode::kRead;
    return status::kSuccess;
  }
  template <typename Group>
  Status wait(Group, bool wanted, uint32_t, Deadline) {
    if (!wanted) return status::kSuccess;
    const bool may_fail = state_.failures != 0 && reads_ == (state_.failing == Opcode::kRead);
    const bool fails = explore::choose(may_fail ? 2 : 1) == 1;
    check_one_slot(page_);
    if (fails) {
      --state_.failures;
      return status::kUnrecoveredRead;
    }
    if (reads_) {
      std::memcpy(state_.landing, state_.drive[page_], kBytes);
      ++state_.reads[page_];
    } else {
      require(state_.tears || state_.landing[0] == state_.landing[1], "no half of a write goes to the drive");
      std::memcpy(state_.drive[page_], state_.landing, kBytes);
      ++state_.writes[page_];
    }
    return status::kSuccess;
  }
  template <typename Group>
  uint32_t sweep(Group) {
    return 0;
  }

 private:
  void check_one_slot(uint64_t page) const {
    uint32_t slots = 0;
    for (uint32_t slot = 0; slot < state_.cache.page_count; ++slot) {
      const PageSlot& at = state_.cache.slots[slot];
      slots += at.key == PageId{1, 1, page}.key() && PageState{at.state}.phase() >= Phase::kLoading;
    }
    require(slots == 1, "a page that moves is in one slot");
  }

  State& state_;
  uint64_t page_ = 0;
  bool reads_ = false;
};

constexpr uint32_t kBoth = 2;

// A guard's life: what it sees must be its page, for as long as it lives. A write doubles one word, or both.
Status use(State& state, uint64_t page, Access access, uint32_t which = kBoth) {
  ModelQueue queue(state);
  PageCache cache(state.cache, &state.errors);
  const PagePin pin = cache.acquire_one(kAlone, {1, 1, page}, access, queue, kNever - 1);
  if (!pin.status.ok()) return pin.status;
  auto* const words = reinterpret_cast<uint64_t*>(cache.page(pin.slot));
  const auto word = [&](uint32_t i) { return AtomicRef<uint64_t, Scope::kDevice>(words[i]); };
  if (access == Access::kRead) {
    const uint64_t value = word(0).load(kRelaxed);
    require(value % content(page) == 0 && value != 0, "a guard's page is the one that it asked for");
    (void)word(1).load(kRelaxed);  // A step, for others.
    require(words[0] % content(page) == 0, "a page stays under its guard");
  } else {
    for (uint32_t i = 0; i < 2; ++i) {
      if (which == i || which == kBoth) word(i).store(2 * words[i], kRelaxed);
    }
  }
  cache.release(kAlone, pin, access);
  return pin.status;
}

struct Use {
  uint64_t page;
  Access access = Access::kRead;
  uint32_t word = kBoth;
};

// Failures that a model allows.
enum : uint32_t { kNothing = 0, kNoRoom = 1, kFailure = 2 };

// Guards one after another. A write for which there is no room is tried until there is.
Explorer<State>::Thread user(std::vector<Use> uses, uint32_t may = kNothing) {
  return [=](State& state) {
    for (const Use& now : uses) {
      Status status = use(state, now.page, now.access, now.word);
      while (status == status::kAllPagesPinned && now.access == Access::kWrite) {
        status = use(state, now.page, now.access, now.word);
      }
      require(status.ok() || ((may & kNoRoom) != 0 && status == status::kAllPagesPinned) ||
                  ((may & kFailure) != 0 && status == status::kUnrecoveredRead),
              "a page is to be had");
    }
  };
}

Explorer<State>::Thread flusher(bool may_fail) {
  return [=](State& state) {
    ModelQueue queue(state);
    PageCache cache(state.cache, &state.errors);
    const Status status = cache.flush(kAlone, 0, 1, queue, {kNever});
    require(status.ok() || may_fail, "what is dirty can be written");
  };
}

struct Expected {
  uint32_t most_reads = 1;             // Of each page.
  uint32_t doublings[kPages][2] = {};  // Writes through guards, that all must be kept.
  uint32_t failures = 0;               // Commands that may fail,
  Opcode failing = Opcode::kRead;      // of this kind.
  bool tears = false;
};

void check_end(const State& state, const Expected& expected) {
  const PageTable table(state.cache.slots, state.cache.heads, state.cache.nexts, state.cache.page_count);
  uint32_t linked = 0;
  uint32_t found[kPages] = {};
  uint64_t now[kPages][2];
  std::memcpy(now, state.drive, sizeof now);
  for (uint32_t bucket = 0; bucket < state.cache.page_count; ++bucket) {
    require(state.cache.heads[bucket] <= state.cache.page_count, "no bucket is locked");
    for (uint32_t link = state.cache.heads[bucket]; link != 0; link = state.cache.nexts[link - 1]) {
      require(++linked <= state.cache.page_count, "chains end");
      require(table.bucket(state.cache.slots[link - 1].key) == bucket, "a slot is in its page's chain");
    }
  }
  for (uint32_t slot = 0; slot < state.cache.page_count; ++slot) {
    const PageState word{state.cache.slots[slot].state};
    require(word.pins() == 0 && word.writers() == 0 && !word.has(PageState::kCleaning), "nothing is pinned");
    require(word.phase() == Phase::kEmpty || word.phase() == Phase::kValid, "nothing is on its way");
    if (word.phase() != Phase::kValid) continue;
    const uint64_t page = state.cache.slots[slot].key & (PageId::kMaxPages - 1);
    require(table.find_locked(table.bucket(state.cache.slots[slot].key), state.cache.slots[slot].key) == slot,
            "a valid page is found");
    require(++found[page] == 1, "a page is in one slot");
    const auto* const words = reinterpret_cast<const uint64_t*>(state.cache.pages + slot * kBytes);
    require(word.has(PageState::kDirty) || std::memcmp(words, state.drive[page], kBytes) == 0,
            "what differs is dirty");
    std::memcpy(now[page], words, kBytes);
  }
  for (uint64_t page = 0; page < kPages; ++page) {
    require(state.reads[page] <= expected.most_reads, "one read for all who want a page");
    for (uint32_t i = 0; i < 2; ++i) {
      require(now[page][i] == content(page) << expected.doublings[page][i], "no write is lost");
    }
  }
}

Report explore_cache(uint32_t slots, std::vector<Explorer<State>::Thread> threads,
                     const Expected& expected = {}) {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  state.failures = expected.failures;
  state.failing = expected.failing;
  state.tears = expected.tears;
  for (uint64_t page = 0; page < kPages; ++page) {
    state.drive[page][0] = state.drive[page][1] = content(page);
  }
  const auto forget = [](State& end) {
    std::memset(static_cast<void*>(end.cache.counters), 0, PageCacheView::kStripes * sizeof(CacheCounters));
    end.errors = {};
    end.landing[0] = end.command_slot == 0 ? 0 : end.landing[0];
    end.landing[1] = end.command_slot == 0 ? 0 : end.landing[1];
    *end.cache.hand %= end.cache.page_count;
  };
  Explorer<State> explorer(
      state, std::move(threads), [=](const State& end) { check_end(end, expected); }, {}, forget);
  explorer.state().cache = make_page_cache(explorer.state().memory, {slots, kBytes, kBytes});
  return explorer.run();
}

constexpr Access kWrite = Access::kWrite;

struct Model {
  const char* name;
  bool quick;
  std::function<Report()> explore;
};

const Model kModels[] = {
    {"one-read", true, [] { return explore_cache(1, {user({{0}})}); }},
    {"two-miss-one-page", true, [] { return explore_cache(1, {user({{0}}), user({{0}})}); }},
    {"two-pages-one-slot", true,
     [] { return explore_cache(1, {user({{0}}, kNoRoom), user({{1}}, kNoRoom)}); }},
    {"two-pages-two-slots", true, [] { return explore_cache(2, {user({{0}}), user({{1}})}); }},
    {"read-fails", true,
     [] { return explore_cache(1, {user({{0}}, kFailure), user({{0}}, kFailure)}, {.failures = 1}); }},
    {"all-pages-in-turn", true,
     [] { return explore_cache(2, {user({{0}, {1}, {2}, {0}})}, {.most_reads = 2}); }},
    {"pages-come-and-go", true,
     [] {
       return explore_cache(1, {user({{0}, {1}}, kNoRoom), user({{1}, {0}}, kNoRoom)}, {.most_reads = 3});
     }},
    // Somebody looks at page 0's slot; meanwhile it gets page 7, of another bucket, and looks just the same.
    {"slot-changes-under-a-look", true,
     [] {
       return explore_cache(2, {user({{0}, {2}, {6}, {7}}, kNoRoom), user({{1}}, kNoRoom)},
                            {.most_reads = 2});
     }},
    {"dirty-page-makes-room", true,
     [] { return explore_cache(1, {user({{0, kWrite}, {1}})}, {.doublings = {{1, 1}}}); }},
    {"write-and-flush", true,
     [] { return explore_cache(1, {user({{0, kWrite}}), flusher(false)}, {.doublings = {{1, 1}}}); }},
    {"two-write-and-one-flushes", true,
     [] {
       return explore_cache(1, {user({{0, kWrite, 0}}), user({{0, kWrite, 1}}), flusher(false)},
                            {.doublings = {{1, 1}}, .tears = true});
     }},
    {"writes-fail", true,
     [] {
       return explore_cache(
           1, {user({{0, kWrite}, {1}}, kFailure), flusher(true)},
           {.most_reads = 2, .doublings = {{1, 1}}, .failures = 2, .failing = Opcode::kWrite});
     }},
    {"write-and-evict", true,
     [] {
       return explore_cache(1, {user({{0, kWrite}}), user({{1}}, kNoRoom)},
                            {.most_reads = 2, .doublings = {{1, 1}}});
     }},
    {"flush-and-evict", true,
     [] {
       return explore_cache(1, {user({{0, kWrite}, {1}, {0, kWrite}}, kNoRoom), flusher(false)},
                            {.most_reads = 2, .doublings = {{2, 2}}});
     }},
    {"three-miss-one-page", false, [] { return explore_cache(1, {user({{0}}), user({{0}}), user({{0}})}); }},
    {"three-pages-two-slots", false,
     [] { return explore_cache(2, {user({{0}}, kNoRoom), user({{1}}, kNoRoom), user({{2}}, kNoRoom)}); }},
    {"write-flush-evict", false,
     [] {
       return explore_cache(1, {user({{0, kWrite}}), user({{1}}, kNoRoom), flusher(false)},
                            {.most_reads = 2, .doublings = {{1, 1}}});
     }},
    {"two-write-and-one-evicts", false,
     [] {
       return explore_cache(1, {user({{0, kWrite, 0}}), user({{0, kWrite, 1}}), user({{1}}, kNoRoom)},
                            {.most_reads = 3, .doublings = {{1, 1}}, .tears = true});
     }},
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
  if (!any) std::fprintf(stderr, "usage: explore_page_cache quick | long | NAME\n");
  return any ? 0 : 2;
}
