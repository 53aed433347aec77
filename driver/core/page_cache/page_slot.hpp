// One slot of the page cache: which page it holds, who uses it, and what must still be done with it.
#pragma once

#include "driver/core/atomics.hpp"
#include "driver/core/status.hpp"

namespace bamquery {

/// What a guard may do with its page.
enum class Access : uint8_t {
  kRead,   ///< Read. Others may write to the page meanwhile.
  kWrite,  ///< Read and write. Others may too; only the page's write-back is kept out.
};

/// A page of a namespace of a drive.
struct PageId {
  uint32_t nsid;  ///< 1 to kMaxNsid; 0: no page.
  uint32_t
      blocks;  ///< The cache's blocks that the namespace has of this page: fewer than a page's at its end.
  uint64_t number;     ///< Below kMaxPages.
  uint32_t drive = 0;  ///< Below kMaxDrives: see Request::drive.

  static constexpr uint32_t kNumberBits = 40;
  static constexpr uint32_t kNsidBits = 16;
  static constexpr uint32_t kMaxNsid = (1u << kNsidBits) - 1;
  static constexpr uint64_t kMaxPages = uint64_t{1} << kNumberBits;
  static constexpr uint32_t kMaxDrives = 1u << (64 - kNumberBits - kNsidBits);

  BAMQUERY_CORE static constexpr PageId none() { return {0, 0, 0}; }
  BAMQUERY_CORE constexpr bool wanted() const { return nsid != 0; }
  /// Never 0 for a page, so that a slot of zeros holds none.
  BAMQUERY_CORE constexpr uint64_t key() const {
    return (static_cast<uint64_t>(drive) << kNsidBits | nsid) << kNumberBits | number;
  }
  /// Which page that is; but not how many blocks it has.
  BAMQUERY_CORE static constexpr PageId of_key(uint64_t key) {
    return {static_cast<uint32_t>(key >> kNumberBits) & kMaxNsid, 0, key & (kMaxPages - 1),
            static_cast<uint32_t>(key >> (kNumberBits + kNsidBits))};
  }
};

enum class Phase : uint8_t {
  kEmpty,    ///< No page, or one that failed to load; its status is for those who waited.
  kClaimed,  ///< One thread's, on its way from one page to the next.
  kLoading,  ///< One thread reads the page; others wait with pins of their own.
  kValid,    ///< The page's bytes are there.
};

/// A slot's state word. All changes are read-modify-writes of the whole word: additions move fields that the
/// thread owns while others count their pins up and down.
///
///     0..21   pins: guards on the page, and threads that look whether it is theirs
///     22..43  writers: pins with Access::kWrite
///     44..54  status of a load that failed
///     55      dirty: written to since it was loaded or written back
///     56      referenced: used since the clock's hand came by
///     57      cleaning: being written back, with a pin; writers keep out
///     58      unsettled: a write-back got no answer, and may still happen. Stays dirty and takes no writers,
///             so that the late write cannot undo a later one
///     60..61  phase
struct PageState {
  uint64_t word;

  static constexpr uint64_t kPin = 1;
  static constexpr uint64_t kWriter = uint64_t{1} << 22;
  static constexpr uint64_t kCountMask = kWriter - 1;
  static constexpr uint32_t kStatusShift = 44;
  static constexpr uint64_t kDirty = uint64_t{1} << 55;
  static constexpr uint64_t kReferenced = uint64_t{1} << 56;
  static constexpr uint64_t kCleaning = uint64_t{1} << 57;
  static constexpr uint64_t kUnsettled = uint64_t{1} << 58;
  static constexpr uint32_t kPhaseShift = 60;

  BAMQUERY_CORE static constexpr uint64_t phase_word(Phase phase) {
    return static_cast<uint64_t>(phase) << kPhaseShift;
  }
  BAMQUERY_CORE static constexpr uint64_t status_word(Status status) {
    return static_cast<uint64_t>(status.code) << kStatusShift;
  }
  /// What a guard adds to the word.
  BAMQUERY_CORE static constexpr uint64_t pin_word(Access access) {
    return access == Access::kWrite ? kPin + kWriter : kPin;
  }

  BAMQUERY_CORE constexpr uint64_t pins() const { return word & kCountMask; }
  BAMQUERY_CORE constexpr uint64_t writers() const { return word / kWriter & kCountMask; }
  BAMQUERY_CORE constexpr Status status() const {
    return {static_cast<uint16_t>(word >> kStatusShift & 0x7ffu)};
  }
  BAMQUERY_CORE constexpr Phase phase() const { return static_cast<Phase>(word >> kPhaseShift & 3); }
  BAMQUERY_CORE constexpr bool has(uint64_t flag) const { return (word & flag) != 0; }
};
static_assert(PageState::kWriter << 22 == uint64_t{1} << PageState::kStatusShift);

/// Key and state lie together: a hit touches this and the bucket's head.
struct alignas(16) PageSlot {
  uint64_t key;    ///< Changes only while the slot is claimed; see PageId::key().
  uint64_t state;  ///< See PageState.
};
static_assert(sizeof(PageSlot) == 16);

using PageStateRef = AtomicRef<uint64_t, Scope::kDevice>;

/// The moves of a slot's state, each one step.
class SlotState {
 public:
  BAMQUERY_CORE explicit SlotState(uint64_t& word) : state_(word) {}

  /// Acquire: what the loader, or a writer before us, stored is to be seen.
  BAMQUERY_CORE PageState look() const { return {state_.load(kAcquire)}; }

  /// Counts a guard, whatever the slot holds; returns what it held. Acquire: as look().
  BAMQUERY_CORE PageState pin(Access access) const {
    return {state_.fetch_add(PageState::pin_word(access), kAcquire)};
  }

  /// Release: our reads are done, and our writes to be seen, before the page is written back or replaced.
  BAMQUERY_CORE void unpin(Access access) const { state_.fetch_sub(PageState::pin_word(access), kRelease); }

  // Relaxed: hints to the clock.
  BAMQUERY_CORE void set_referenced() const { state_.fetch_or(PageState::kReferenced, kRelaxed); }
  BAMQUERY_CORE void clear_referenced() const { state_.fetch_and(~PageState::kReferenced, kRelaxed); }

  /// By a writer that is counted. Relaxed: who cleans sees it with the writer's unpin.
  BAMQUERY_CORE void set_dirty() const { state_.fetch_or(PageState::kDirty, kRelaxed); }

  /// Takes an unpinned slot that is empty, or valid and clean. Acquire: all use of the page is over; release:
  /// carries on what the former users released.
  BAMQUERY_CORE bool claim(PageState seen) const {
    return state_.compare_exchange(seen.word, PageState::phase_word(Phase::kClaimed), kAcquireRelease);
  }

  /// Release: the slot's new key is to be seen by who finds it loading.
  BAMQUERY_CORE void claimed_to_loading(Access access) const {
    state_.fetch_add(PageState::phase_word(Phase::kLoading) - PageState::phase_word(Phase::kClaimed) +
                         PageState::pin_word(access),
                     kRelease);
  }
  BAMQUERY_CORE void claimed_to_empty() const {
    state_.fetch_sub(PageState::phase_word(Phase::kClaimed), kRelease);
  }

  /// The loader keeps its pin. Release: the page's bytes are to be seen by who finds it valid.
  BAMQUERY_CORE void loading_to_valid() const {
    state_.fetch_add(PageState::phase_word(Phase::kValid) - PageState::phase_word(Phase::kLoading), kRelease);
  }
  /// Gives up the loader's pin; the slot is free once all who waited have seen the status.
  BAMQUERY_CORE void loading_to_failed(Access access, Status status) const {
    state_.fetch_add(PageState::phase_word(Phase::kEmpty) - PageState::phase_word(Phase::kLoading) +
                         PageState::status_word(status) - PageState::pin_word(access),
                     kRelease);
  }

  /// Keeps writers, other cleaners and eviction out of a dirty page. Acquire: all that was written is to be
  /// copied.
  BAMQUERY_CORE bool begin_clean(PageState seen) const {
    return state_.compare_exchange(seen.word, seen.word + PageState::kPin + PageState::kCleaning, kAcquire);
  }
  /// No writer came in meanwhile, so the page is clean now.
  BAMQUERY_CORE void end_clean() const {
    state_.fetch_sub(PageState::kPin + PageState::kCleaning + PageState::kDirty, kRelease);
  }
  BAMQUERY_CORE void fail_clean(Status status) const {
    const bool unsettled = status == status::kDeadlineMissed || status == status::kQueueBroken;
    state_.fetch_add((unsettled ? PageState::kUnsettled : 0) - PageState::kPin - PageState::kCleaning,
                     kRelease);
  }

 private:
  PageStateRef state_;
};

/// A dirty page that nobody writes to or cleans, and that may be cleaned.
BAMQUERY_CORE constexpr bool cleanable(PageState state) {
  return state.phase() == Phase::kValid && state.has(PageState::kDirty) && state.writers() == 0 &&
         !state.has(PageState::kCleaning) && !state.has(PageState::kUnsettled);
}

}  // namespace bamquery
