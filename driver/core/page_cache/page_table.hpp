// Which slot holds a page: chains of slots from hashed buckets.
//
// Finding takes no lock. A bucket's head word carries two rights besides the first slot's number:
//   locked     its chain is being changed. Held for a few instructions, with no wait inside.
//   inserting  one thread brings a page into this bucket. Held while it finds room, so that no page comes
//              into two slots, and only one slot is claimed for a page that many miss.
// Chains have no tombstones and never overflow; the table costs 8 bytes a slot.
#pragma once

#include "driver/core/page_cache/page_slot.hpp"

namespace bamquery {

inline constexpr uint32_t kNoPageSlot = 0xffffffffu;

/// Mixes all bits of a key (the finaliser of MurmurHash3), so that runs of pages spread.
BAMQUERY_CORE constexpr uint64_t mix(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdull;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  key ^= key >> 33;
  return key;
}

class PageTable {
 public:
  static constexpr uint32_t kLocked = 1u << 31;
  static constexpr uint32_t kInserting = 1u << 30;
  static constexpr uint32_t kMaxSlots = kInserting - 1;

  BAMQUERY_CORE PageTable(PageSlot* slots, uint32_t* heads, uint32_t* nexts, uint32_t count)
      : slots_(slots), heads_(heads), nexts_(nexts), count_(count) {}

  BAMQUERY_CORE uint32_t bucket(uint64_t key) const {
    return static_cast<uint32_t>((mix(key) >> 32) * count_ >> 32);
  }

  /// The slot that holds the page, or kNoPageSlot; wrong either way where chains change meanwhile: a hit is
  /// to be checked under a pin, a miss under the bucket's lock.
  BAMQUERY_CORE uint32_t find(uint64_t key) const {
    uint32_t link = head(bucket(key)).load(kRelaxed) & kMaxSlots;  // Relaxed: see above.
    for (uint32_t steps = 0; link != 0 && steps < kMaxSteps; ++steps) {
      if (read_key(link - 1) == key) return link - 1;
      link = next(link - 1).load(kRelaxed);
    }
    return kNoPageSlot;
  }

  BAMQUERY_CORE uint64_t read_key(uint32_t slot) const {
    // Relaxed: stable under a pin on a slot that loads or is valid, else a hint.
    return AtomicRef<uint64_t, Scope::kDevice>(slots_[slot].key).load(kRelaxed);
  }
  BAMQUERY_CORE void write_key(uint32_t slot, uint64_t key) const {
    // Relaxed: claimed_to_loading() releases it.
    AtomicRef<uint64_t, Scope::kDevice>(slots_[slot].key).store(key, kRelaxed);
  }

  /// Takes the bucket's lock if it is free. Acquire: the chain as the last holder left it.
  BAMQUERY_CORE bool try_lock(uint32_t bucket) const {
    uint32_t word = head(bucket).load(kRelaxed);  // Relaxed: the exchange decides.
    return (word & kLocked) == 0 && head(bucket).compare_exchange(word, word | kLocked, kAcquire);
  }

  /// Takes lock and right to insert, if both are free.
  BAMQUERY_CORE bool try_begin_insert(uint32_t bucket) const {
    uint32_t word = head(bucket).load(kRelaxed);  // Relaxed: the exchange decides.
    return (word & (kLocked | kInserting)) == 0 &&
           head(bucket).compare_exchange(word, word | kLocked | kInserting, kAcquire);
  }

  // Additions, since others may take the right to insert meanwhile. Release: the chain as it is now.
  BAMQUERY_CORE void unlock(uint32_t bucket) const { head(bucket).fetch_sub(kLocked, kRelease); }
  BAMQUERY_CORE void unlock_and_end_insert(uint32_t bucket) const {
    head(bucket).fetch_sub(kLocked + kInserting, kRelease);
  }
  BAMQUERY_CORE void end_insert(uint32_t bucket) const { head(bucket).fetch_sub(kInserting, kRelease); }

  // The rest under the bucket's lock, which orders them: relaxed.

  BAMQUERY_CORE uint32_t find_locked(uint32_t bucket, uint64_t key) const {
    uint32_t link = head(bucket).load(kRelaxed) & kMaxSlots;
    while (link != 0 && read_key(link - 1) != key) link = next(link - 1).load(kRelaxed);
    return link == 0 ? kNoPageSlot : link - 1;
  }

  BAMQUERY_CORE void link(uint32_t bucket, uint32_t slot) const {
    const uint32_t first = head(bucket).load(kRelaxed) & kMaxSlots;
    next(slot).store(first, kRelaxed);
    head(bucket).fetch_add(slot + 1 - first, kRelease);  // Release: who walks from here sees the link.
  }

  /// Takes the slot out of the chain, if it is in it.
  BAMQUERY_CORE void unlink(uint32_t bucket, uint32_t slot) const {
    const uint32_t first = head(bucket).load(kRelaxed) & kMaxSlots;
    if (first == slot + 1) {
      head(bucket).fetch_add(next(slot).load(kRelaxed) - first, kRelaxed);
      return;
    }
    for (uint32_t link = first; link != 0;) {
      const uint32_t after = next(link - 1).load(kRelaxed);
      if (after == slot + 1) {
        next(link - 1).store(next(slot).load(kRelaxed), kRelaxed);
        return;
      }
      link = after;
    }
  }

 private:
  /// Chains have less than two slots on average; a walk that goes on may have strayed into a changing one.
  static constexpr uint32_t kMaxSteps = 32;

  BAMQUERY_CORE AtomicRef<uint32_t, Scope::kDevice> head(uint32_t bucket) const {
    return AtomicRef<uint32_t, Scope::kDevice>(heads_[bucket]);
  }
  BAMQUERY_CORE AtomicRef<uint32_t, Scope::kDevice> next(uint32_t slot) const {
    return AtomicRef<uint32_t, Scope::kDevice>(nexts_[slot]);
  }

  PageSlot* slots_;
  uint32_t* heads_;  ///< Per bucket: rights, and number + 1 of the chain's first slot.
  uint32_t* nexts_;  ///< Per slot: number + 1 of the next in its chain.
  uint32_t count_;   ///< Of slots, and of buckets.
};

}  // namespace bamquery
