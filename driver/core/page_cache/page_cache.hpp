// The page cache: a fixed number of pages in the running side's memory, read when they are first wanted.
//
// Who may wait while holding what, so that nothing waits in a circle:
//   - A bucket's lock is held for a few instructions, never while waiting for anything.
//   - A command slot is held only until its own command is answered.
//   - Who loads a page, or writes one back, waits for command slots and commands only. Lanes of a group
//   finish
//     their own loads before any of them waits for a page that others load.
//   - Who wants a page waits for its loader, its write-back or its bucket, and holds pages only if its caller
//     does. So a thread, and the lanes of a group, may hold pages while they acquire more: what they wait for
//     ends without them. What does not end without them is no wait but an error: a cache whose pages are all
//     pinned answers kAllPagesPinned after a bounded look.
//   - flush() waits until writers of a page are gone: it is not to be called with a WriteGuard held.
// Every wait ends at the caller's deadline, with kDeadlineMissed.
#pragma once

#include "driver/core/error_record.hpp"
#include "driver/core/page_cache/clock.hpp"
#include "driver/core/page_cache/page_cache_view.hpp"
#include "driver/core/page_cache/page_table.hpp"
#include "driver/core/page_cache/page_transfer.hpp"

namespace bamquery {

/// A lane's share in a page. Only guards and arrays handle it: see page_guard.hpp.
struct PagePin {
  Status status;
  uint32_t slot;  ///< Where status is success.
  bool owned;     ///< This lane's to release, for all lanes that share it.
};

/// Made where it is used, from a view that outlives it.
class PageCache {
 public:
  BAMQUERY_CORE PageCache(const PageCacheView& view, ErrorRecord* errors)
      : view_(view), errors_(errors), table_(view.slots, view.heads, view.nexts, view.page_count) {}

  /// Pins the page that each lane wants (PageId::none(): none). Lanes that want the same page share one pin,
  /// which the first of them owns. All lanes of the group (Lanes::warp() or Lone{}) call, for the same
  /// access.
  template <typename Group, typename Queue>
  BAMQUERY_CORE PagePin acquire_many(Group group, const PageId& page, Access access, Queue& queue,
                                     uint64_t timeout_ns) {
    const uint32_t first = lowest_bit(group.match(page.wanted() ? page.key() : 0));
    return acquire(group, page.wanted() && first == group.rank(), first, page, access, queue, timeout_ns);
  }

  /// The same where all lanes of the group want one page.
  template <typename Group, typename Queue>
  BAMQUERY_CORE PagePin acquire_one(Group group, const PageId& page, Access access, Queue& queue,
                                    uint64_t timeout_ns) {
    return acquire(group, group.leads(), 0, page, access, queue, timeout_ns);
  }

  /// Ends a lane's use of its page. All lanes of the group call that are still there.
  template <typename Group>
  BAMQUERY_CORE void release(Group group, const PagePin& pin, Access access) {
    group.sync();  // The lane that owns the pin releases for all.
    if (pin.owned) state(pin.slot).unpin(access);
  }

  /// Writes back every page that is dirty now, lanes side by side; `part` of `parts` groups share the work.
  /// Returns the first failure that this lane saw; its page stays dirty. Writers may go on meanwhile: what
  /// they write to a page after its write-back waits for the next. All lanes of the group call.
  template <typename Group, typename Queue>
  BAMQUERY_CORE Status flush(Group group, uint32_t part, uint32_t parts, Queue& queue, Deadline deadline) {
    Status result = status::kSuccess;
    const uint64_t stride = uint64_t{parts} * group.count();
    for (uint64_t first = uint64_t{part} * group.count(); first < view_.page_count; first += stride) {
      const uint64_t slot = first + group.rank();
      const Status status =
          clean(group, slot < view_.page_count, static_cast<uint32_t>(slot), queue, deadline);
      if (result.ok()) result = status;
    }
    return result;
  }

  BAMQUERY_CORE byte* page(uint32_t slot) const {
    return view_.pages + static_cast<uint64_t>(slot) * view_.page_bytes;
  }
  /// Bytes of the slot's page that its namespace has.
  BAMQUERY_CORE uint32_t bytes(uint32_t slot) const { return view_.blocks[slot] * view_.block_bytes; }

 private:
  /// How far a lane is with its page.
  enum class Step : uint8_t {
    kFind,   ///< Look for it, or for room.
    kAwait,  ///< Pinned; somebody else loads it.
    kLoad,   ///< Pinned; to be loaded by us.
    kClean,  ///< A dirty page must be written back first.
    kDone,
  };

  /// Lanes that lead find their page, and share it with those whose leader they are.
  template <typename Group, typename Queue>
  BAMQUERY_CORE PagePin acquire(Group group, bool leads, uint32_t leader, const PageId& page, Access access,
                                Queue& queue, uint64_t timeout_ns) {
    Status status = status::kSuccess;
    uint32_t slot = kNoPageSlot;
    const Step step = leads ? look(page, access, slot, status) : Step::kDone;
    if (group.any(step != Step::kDone)) {
      const Deadline deadline = Deadline::in(timeout_ns);
      status = acquire_slowly(group, step, page, access, queue, deadline, slot, status);
    }
    group.sync();  // What the leader acquired is to be seen by all.
    const bool owned = leads && status.ok();
    return {{group.broadcast(status.code, leader)}, group.broadcast(slot, leader), owned};
  }

  /// Goes on until every lane has its page, or knows why not.
  template <typename Group, typename Queue>
  BAMQUERY_CORE_SLOW Status acquire_slowly(Group group, Step step, const PageId& page, Access access,
                                           Queue& queue, Deadline deadline, uint32_t& slot, Status status) {
    uint32_t failed_cleans = 0;
    for (Backoff wait;; wait.pause()) {
      if (step == Step::kFind) step = insert(page, access, deadline, slot, status);
      const bool moves = step == Step::kLoad || step == Step::kClean;
      if (group.any(moves)) {
        const PageTransfer transfer = moves ? plan(step, slot, queue) : PageTransfer{};
        const Status moved = transfer_pages(group, transfer, queue, deadline);
        if (step == Step::kLoad) {
          status = moved;
          finish_load(slot, access, transfer.request, moved);
          step = Step::kDone;
        } else if (step == Step::kClean) {
          finish_clean(slot, transfer.request, moved);
          step = Step::kFind;
          // Other pages may do, but a drive that takes no writes must not be tried page by page.
          if (!moved.ok() && ++failed_cleans == kMaxFailedCleans) {
            status = moved;
            step = Step::kDone;
          }
        }
      }
      if (step == Step::kAwait) step = await(slot, access, status);
      if (!group.any(step != Step::kDone)) break;
      if (wait.looks() % 16 == 15) sweep(group, queue);
      if (step == Step::kFind || step == Step::kAwait) {
        if (deadline.passed()) {
          if (step == Step::kAwait) state(slot).unpin(access);
          status = status::kDeadlineMissed;
          step = Step::kDone;
        } else if (step == Step::kFind) {
          step = look(page, access, slot, status);
        }
      }
    }
    return status;
  }

  /// Pins the page if it is there, or on its way. Waits for nothing.
  BAMQUERY_CORE Step look(const PageId& page, Access access, uint32_t& slot, Status& status) {
    if (!fits(page)) {
      status = status::kTooLarge;
      return Step::kDone;
    }
    const uint64_t key = page.key();
    slot = table_.find(key);
    if (slot == kNoPageSlot) return Step::kFind;
    const PageState seen = state(slot).pin(access);
    // Under a pin the key of a page that loads or is valid stays.
    if (seen.phase() >= Phase::kLoading && table_.read_key(slot) == key) {
      return join(slot, access, seen, status);
    }
    state(slot).unpin(access);
    return Step::kFind;
  }

  /// Goes on with a page that was found, and is pinned.
  BAMQUERY_CORE Step join(uint32_t slot, Access access, PageState seen, Status& status) {
    if (access == Access::kWrite) {
      if (seen.has(PageState::kUnsettled)) {
        state(slot).unpin(access);
        status = status::kDeadlineMissed;
        return Step::kDone;
      }
      if (seen.has(PageState::kCleaning)) {
        state(slot).unpin(access);
        return Step::kFind;
      }
    }
    if (seen.phase() == Phase::kLoading) {
      count(view_, slot, &CacheCounters::coalesced);
      return Step::kAwait;
    }
    count(view_, slot, &CacheCounters::hits);
    if (!seen.has(PageState::kReferenced)) state(slot).set_referenced();
    if (access == Access::kWrite && !seen.has(PageState::kDirty)) state(slot).set_dirty();
    return Step::kDone;
  }

  /// Finds room for a page that is not there.
  BAMQUERY_CORE Step insert(const PageId& page, Access access, Deadline deadline, uint32_t& slot,
                            Status& status) {
    const uint64_t key = page.key();
    const uint32_t bucket = table_.bucket(key);
    if (!table_.try_begin_insert(bucket)) return Step::kFind;
    slot = table_.find_locked(bucket, key);
    if (slot != kNoPageSlot) {
      // Nobody claims a slot in this chain while we have its lock, so the pin comes in time.
      const PageState seen = state(slot).pin(access);
      if (seen.phase() >= Phase::kLoading) {
        table_.unlock_and_end_insert(bucket);
        return join(slot, access, seen, status);
      }
      state(slot).unpin(access);
      table_.unlink(bucket, slot);  // It failed to load; those who waited for it still have its status.
    }
    table_.unlock(bucket);

    const Claim claim = Clock(view_, table_).claim(slot);
    if (claim != Claim::kClaimed) {
      table_.end_insert(bucket);
      if (claim == Claim::kMustClean) return Step::kClean;
      if (claim == Claim::kBusy) return Step::kFind;
      status = status::kAllPagesPinned;
      return Step::kDone;
    }
    for (Backoff wait; !table_.try_lock(bucket); wait.pause()) {
      if (deadline.passed()) {
        state(slot).claimed_to_empty();
        table_.end_insert(bucket);
        return Step::kFind;
      }
    }
    table_.write_key(slot, key);
    view_.blocks[slot] = page.blocks;
    state(slot).claimed_to_loading(access);
    table_.link(bucket, slot);
    table_.unlock_and_end_insert(bucket);
    count(view_, slot, &CacheCounters::misses);
    return Step::kLoad;
  }

  BAMQUERY_CORE Step await(uint32_t slot, Access access, Status& status) {
    const PageState seen = state(slot).look();
    if (seen.phase() == Phase::kLoading) return Step::kAwait;
    if (seen.phase() == Phase::kValid) {
      state(slot).set_referenced();
      if (access == Access::kWrite) state(slot).set_dirty();
    } else {
      status = seen.status();
      state(slot).unpin(access);
    }
    return Step::kDone;
  }

  template <typename Queue>
  BAMQUERY_CORE PageTransfer plan(Step step, uint32_t slot, const Queue& queue) const {
    PageId id = PageId::of_key(table_.read_key(slot));
    id.blocks = view_.blocks[slot];
    const Opcode opcode = step == Step::kLoad ? Opcode::kRead : Opcode::kWrite;
    return {true, page_request(opcode, id, view_, queue), page(slot), bytes(slot)};
  }

  BAMQUERY_CORE void finish_load(uint32_t slot, Access access, const Request& request, Status status) {
    if (status.ok()) {
      if (access == Access::kWrite) state(slot).set_dirty();
      state(slot).loading_to_valid();
    } else {
      count(view_, slot, &CacheCounters::failures);
      record_error(errors_, request, status);
      state(slot).loading_to_failed(access, status);
    }
  }

  BAMQUERY_CORE void finish_clean(uint32_t slot, const Request& request, Status status) {
    if (status.ok()) {
      count(view_, slot, &CacheCounters::write_backs);
      state(slot).end_clean();
    } else {
      count(view_, slot, &CacheCounters::failures);
      record_error(errors_, request, status);
      state(slot).fail_clean(status);
    }
  }

  /// Writes each lane's page back, if it is dirty.
  template <typename Group, typename Queue>
  BAMQUERY_CORE Status clean(Group group, bool wanted, uint32_t slot, Queue& queue, Deadline deadline) {
    Status status = status::kSuccess;
    for (Backoff wait; group.any(wanted);) {
      bool mine = false;
      if (wanted) {
        const PageState seen = state(slot).look();
        if (seen.phase() != Phase::kValid || !seen.has(PageState::kDirty)) {
          wanted = false;
        } else if (seen.has(PageState::kUnsettled)) {
          status = status::kDeadlineMissed;
          wanted = false;
        } else if (cleanable(seen)) {
          mine = state(slot).begin_clean(seen);
        }
      }
      if (group.any(mine)) {
        const PageTransfer transfer = mine ? plan(Step::kClean, slot, queue) : PageTransfer{};
        const Status moved = transfer_pages(group, transfer, queue, deadline);
        if (mine) {
          status = moved;
          finish_clean(slot, transfer.request, moved);
          wanted = false;
        }
      } else if (wanted) {
        if (deadline.passed()) {
          status = status::kDeadlineMissed;
          wanted = false;
        }
        wait.pause();
      }
    }
    return status;
  }

  /// What a key can say, and the namespace has.
  BAMQUERY_CORE bool fits(const PageId& page) const {
    return page.wanted() && page.nsid <= PageId::kMaxNsid && page.number < PageId::kMaxPages &&
           page.drive < PageId::kMaxDrives && page.blocks != 0 &&
           page.blocks <= view_.page_bytes / view_.block_bytes;
  }

  BAMQUERY_CORE SlotState state(uint32_t slot) const { return SlotState(view_.slots[slot].state); }

  static constexpr uint32_t kMaxFailedCleans = 4;

  const PageCacheView& view_;
  ErrorRecord* errors_;
  PageTable table_;
};

}  // namespace bamquery
