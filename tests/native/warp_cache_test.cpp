// The page cache and arrays used by whole warps, and by lanes that diverge and leave at random.
// Usage: warp_cache_test ROUNDS SEED

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "driver/core/array/array.hpp"
#include "driver/core/page_cache/page_guard.hpp"
#include "tests/native/rings/fake_drive.hpp"
#include "tests/native/warps.hpp"

namespace bamquery {
namespace {

constexpr uint32_t kPageBytes = 512;
constexpr uint32_t kWords = kPageBytes / sizeof(uint64_t);
constexpr uint64_t kPages = 24;
constexpr uint64_t kLong = uint64_t{1} << 40;

// Commands take a while, in which other lanes go on.
class SlowQueue : public FakeQueue {
 public:
  using FakeQueue::FakeQueue;

  template <typename Group>
  Status wait(Group group, bool wanted, uint32_t slot, Deadline deadline) {
    for (uint32_t naps = warps::ThreadBlock::current().draw(4); wanted && naps != 0; --naps) explore::pause();
    return FakeQueue::wait(group, wanted, slot, deadline);
  }
};

// One drive.
class OneDrive : public SlowQueue {
 public:
  static constexpr bool kStriped = false;

  explicit OneDrive(uint32_t /*drives*/) : OneDrive(std::make_unique<FakeDrive>(kPages)) {}
  uint32_t drives() const { return 1; }
  FakeDrive& drive(uint32_t) const { return *drive_; }

 private:
  explicit OneDrive(std::unique_ptr<FakeDrive> drive)
      : SlowQueue(*drive, kPageBytes), drive_(std::move(drive)) {}

  std::unique_ptr<FakeDrive> drive_;
};

// Several, as one address space.
class ManyDrives {
 public:
  static constexpr bool kStriped = true;

  explicit ManyDrives(uint32_t drives) {
    for (uint32_t i = 0; i < drives; ++i) queues_.push_back(std::make_unique<OneDrive>(1));
  }
  uint32_t drives() const { return static_cast<uint32_t>(queues_.size()); }
  FakeDrive& drive(uint32_t number) const { return queues_[number]->drive(0); }

  SlowQueue& at(uint32_t drive) const { return *queues_[drive]; }
  uint32_t lba_bytes(uint32_t) const { return 512; }
  template <typename Group>
  uint32_t sweep(Group) const {
    return 0;
  }

 private:
  std::vector<std::unique_ptr<OneDrive>> queues_;
};

template <typename Queue>
class Round {
 public:
  explicit Round(uint32_t seed)
      : random_(seed),
        config_{draw_pages(), kPageBytes, 512},
        memory_(page_cache_bytes(config_) + 4096),
        view_(make_page_cache(memory_.data() + 4096 - reinterpret_cast<uintptr_t>(memory_.data()) % 4096,
                              config_)),
        queue_(2 + static_cast<uint32_t>(random_() % 3)),
        pages_(kPages * queue_.drives()),
        array_{view_, {0, 0, pages_ * kPageBytes, pages_, 1}, &errors_, pages_ * kWords, kLong, 1, 0} {
    if constexpr (Queue::kStriped) {
      stripe_shift_ = static_cast<uint32_t>(random_() % 4);
      for (uint32_t drive = 0; drive < queue_.drives(); ++drive) members_.push_back({drive, 1});
      std::shuffle(members_.begin(), members_.end(), random_);
      array_.extent.stripes = members_.data();
      array_.extent.members = queue_.drives();
      array_.extent.stripe_shift = stripe_shift_;
    }
    for (uint64_t i = 0; i < pages_ * kWords; ++i) {
      const uint64_t word = i << 16;
      std::memcpy(bytes_of(i), &word, sizeof word);
    }
    // A block in eight reads badly in half of the rounds, of the first drive.
    bad_ = random_() % 2 == 0;
    if (bad_) {
      queue_.drive(0).answer = [](const Request& request) {
        return request.opcode == Opcode::kRead && request.lba % 8 == 7 ? status::kUnrecoveredRead
                                                                       : status::kSuccess;
      };
    }
    threads_ = 32 * (1 + static_cast<uint32_t>(random_() % 2));
    written_.resize(pages_ * kWords);
    seed_ = static_cast<uint32_t>(random_());
  }

  void run(uint32_t seed) {
    warps::ThreadBlock block;
    block.run(threads_, seed, [this](uint32_t thread) { live(thread); }, [] {});
    check();
  }

 private:
  uint32_t draw_pages() {
    constexpr uint32_t kSizes[] = {1, 2, 3, 8, 31, 64};
    return kSizes[random_() % 6];
  }

  // Where page `page` of the address space is.
  PageId id(uint64_t page) const {
    if (members_.empty()) return {1, 1, page};
    const uint64_t per_stripe = uint64_t{1} << stripe_shift_;
    const uint64_t stripe = page / per_stripe;
    const uint64_t number = stripe / members_.size() * per_stripe + page % per_stripe;
    return {1, 1, number, members_[stripe % members_.size()].drive};
  }

  byte* bytes_of(uint64_t word) const {
    const PageId place = id(word / kWords);
    return queue_.drive(place.drive).bytes.data() + place.number * kPageBytes +
           word % kWords * sizeof(uint64_t);
  }

  bool bad(uint64_t page) const { return bad_ && id(page).drive == 0 && id(page).number % 8 == 7; }

  void live(uint32_t thread) {
    std::mt19937 random(seed_ + thread);
    // All lanes of the warp.
    for (uint32_t turn = 0; turn < 3; ++turn) {
      read_pages(turn % 2 == 0 ? random() % pages_ : (thread / 32 + turn) % pages_);
      read_one_page((thread / 32 * 5 + turn) % pages_);
    }
    if (random() % 4 == 0) return;  // The others go on without it.
    for (uint32_t turn = 0; turn < 3; ++turn) {
      if (random() % 2 == 0) continue;
      const uint64_t index = random() % (pages_ * kWords) / threads_ * threads_ + thread;
      if (index < pages_ * kWords) count_up(index);
    }
  }

  // Each lane a page of its own.
  void read_pages(uint64_t page) {
    PageCache cache(view_, &errors_);
    const ReadGuard guard = ReadGuard::many(cache, Lanes::warp(), id(page), queue_, kLong);
    if (guard.status() == status::kAllPagesPinned) return;
    check_page(guard, page);
  }

  // All lanes the same.
  void read_one_page(uint64_t page) {
    PageCache cache(view_, &errors_);
    const ReadGuard guard = ReadGuard::one(cache, Lanes::warp(), id(page), queue_, kLong);
    if (guard.status() == status::kAllPagesPinned) return;
    check_page(guard, page);
  }

  void check_page(const ReadGuard& guard, uint64_t page) const {
    CHECK(guard.status() == (bad(page) ? status::kUnrecoveredRead : status::kSuccess));
    if (!guard.status().ok()) return;
    for (uint32_t i = 0; i < kWords; i += 21) {
      uint64_t value;
      CHECK(guard.load(i, value).ok() && value >> 16 == page * kWords + i);
      // Some lanes take their time.
      for (uint32_t naps = warps::ThreadBlock::current().draw(40); naps != 0; --naps) explore::pause();
    }
  }

  // Each lane for itself.
  void count_up(uint64_t index) {
    Array<uint64_t, Queue> array(array_, queue_);
    uint64_t value;
    const Status status = array.read(index, value);
    CHECK(status == (bad(index / kWords) ? status::kUnrecoveredRead : status::kSuccess));
    if (!status.ok()) return;
    CHECK(value == (index << 16) + written_[index]);
    CHECK(array.write(index, value + 1).ok());
    ++written_[index];
  }

  void check() {
    PageCache cache(view_, &errors_);
    for (uint32_t slot = 0; slot < view_.page_count; ++slot) {
      const PageState state{view_.slots[slot].state};
      CHECK(state.pins() == 0 && state.writers() == 0);
      CHECK(state.phase() == Phase::kEmpty || state.phase() == Phase::kValid);
    }
    // By one warp, all of it.
    warps::ThreadBlock block;
    block.run(
        32, seed_, [&](uint32_t) { CHECK(cache.flush(Lanes::warp(), 0, 1, queue_, Deadline{kLong}).ok()); },
        [] {});
    for (uint64_t i = 0; i < pages_ * kWords; ++i) {
      uint64_t value;
      std::memcpy(&value, bytes_of(i), sizeof value);
      CHECK(value == (i << 16) + written_[i]);
    }
  }

  std::mt19937 random_;
  PageCacheConfig config_;
  std::vector<byte> memory_;
  PageCacheView view_;
  Queue queue_;
  uint64_t pages_;
  std::vector<StripeMember> members_;
  uint32_t stripe_shift_ = 0;
  bool bad_ = false;
  ErrorRecord errors_{};
  ArrayView array_;
  uint32_t threads_ = 32;
  uint32_t seed_ = 0;
  std::vector<uint64_t> written_;
};

}  // namespace
}  // namespace bamquery

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 100;
  const int seed = count > 2 ? std::atoi(arguments[2]) : 1;
  for (int round = 0; round < rounds; ++round) {
    const auto number = static_cast<std::uint32_t>(seed + round);
    std::fprintf(stderr, "seed %u\n", number);
    bamquery::Round<bamquery::OneDrive>(number).run(number);
    bamquery::Round<bamquery::ManyDrives>(number).run(number);
  }
  std::puts("all warp cache tests passed");
}
