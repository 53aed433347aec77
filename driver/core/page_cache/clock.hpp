// Which slot gives way to a page: CLOCK, with a reference bit that a page earns by its second use.
#pragma once

#include "driver/core/page_cache/page_cache_view.hpp"
#include "driver/core/page_cache/page_table.hpp"

namespace bamquery {

enum class Claim : uint8_t {
  kClaimed,    ///< The slot is ours and in no chain.
  kMustClean,  ///< The slot's page is dirty: it is ours to write back (begin_clean() is done), then to retry.
  kBusy,       ///< Slots were on their way from one page to the next: retry.
  kAllPinned,  ///< One look at every slot found each in use.
};

class Clock {
 public:
  BAMQUERY_CORE Clock(const PageCacheView& view, const PageTable& table) : view_(view), table_(table) {}

  /// Looks at three times as many slots as there are, at most, and waits for nothing.
  BAMQUERY_CORE Claim claim(uint32_t& slot) const {
    bool moving = false;
    const uint32_t count = view_.page_count;
    for (uint64_t tries = 0; tries < 2 * uint64_t{count}; ++tries) {
      slot = next_place();
      const Look look = take(slot, false);
      if (look == Look::kTaken) return Claim::kClaimed;
      if (look == Look::kDirty) return Claim::kMustClean;
      moving |= look == Look::kMoving;
    }
    // Other hands may have stood where we did not look.
    for (slot = 0; slot < count; ++slot) {
      const Look look = take(slot, true);
      if (look == Look::kTaken) return Claim::kClaimed;
      if (look == Look::kDirty) return Claim::kMustClean;
      moving |= look == Look::kMoving;
    }
    return moving ? Claim::kBusy : Claim::kAllPinned;
  }

 private:
  enum class Look : uint8_t { kTaken, kDirty, kPinned, kMoving, kSpared };

  BAMQUERY_CORE uint32_t next_place() const {
    // Relaxed: any place will do.
    return AtomicRef<uint32_t, Scope::kDevice>(*view_.hand).fetch_add(1, kRelaxed) % view_.page_count;
  }

  BAMQUERY_CORE Look take(uint32_t slot, bool insists) const {
    const SlotState state(view_.slots[slot].state);
    const PageState seen = state.look();
    if (seen.phase() == Phase::kClaimed) return Look::kMoving;
    // Those who waited for a page that failed to load are about to leave.
    if (seen.phase() == Phase::kEmpty && seen.pins() != 0) return Look::kMoving;
    // So is who cleans a page that nobody else has.
    if (seen.has(PageState::kCleaning) && seen.pins() == 1) return Look::kMoving;
    if (seen.pins() != 0 || seen.has(PageState::kUnsettled)) return Look::kPinned;
    if (seen.has(PageState::kReferenced) && !insists) {
      state.clear_referenced();
      return Look::kSpared;
    }
    if (seen.has(PageState::kDirty)) return state.begin_clean(seen) ? Look::kDirty : Look::kMoving;

    const uint64_t key = table_.read_key(slot);
    if (key == 0) return state.claim(seen) ? Look::kTaken : Look::kMoving;
    // Claimed and unlinked under one lock: who holds a bucket's lock sees no claimed slot in its chain.
    const uint32_t bucket = table_.bucket(key);
    if (!table_.try_lock(bucket)) return Look::kMoving;
    // Looked at once more, and the key after that: a slot that is not claimed now, and has a page of this
    // bucket, can only be claimed by who holds the lock. Before we held it the slot may have been claimed,
    // have got a page of another bucket, and look just the same.
    const bool taken = state.look().word == seen.word && table_.read_key(slot) == key && state.claim(seen);
    if (taken) table_.unlink(bucket, slot);
    table_.unlock(bucket);
    if (taken && seen.phase() == Phase::kValid) count(view_, slot, &CacheCounters::evictions);
    return taken ? Look::kTaken : Look::kMoving;
  }

  const PageCacheView& view_;
  const PageTable& table_;
};

}  // namespace bamquery
