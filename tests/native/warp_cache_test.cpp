// The page cache and arrays used by whole warps, and by lanes that diverge and leave at random.
// Usage: warp_cache_test ROUNDS SEED

#include <cstdio>
#include <cstdlib>
#include <cstring>
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

class Round {
 public:
  explicit Round(uint32_t seed)
      : random_(seed),
        config_{draw_pages(), kPageBytes, 512},
        memory_(page_cache_bytes(config_) + 4096),
        view_(make_page_cache(memory_.data() + 4096 - reinterpret_cast<uintptr_t>(memory_.data()) % 4096,
                              config_)),
        drive_(kPages),
        queue_(drive_, kPageBytes),
        array_{view_, {0, 0, kPages * kPageBytes, kPages, 1, 0}, &errors_, kPages * kWords, kLong, 1, 0} {
    std::memcpy(drive_.bytes.data(), initial().data(), drive_.bytes.size());
    // A block in eight reads badly in half of the rounds.
    if (random_() % 2 == 0) {
      drive_.answer = [](const Request& request) {
        return request.opcode == Opcode::kRead && request.lba % 8 == 7 ? status::kUnrecoveredRead
                                                                       : status::kSuccess;
      };
    }
    threads_ = 32 * (1 + static_cast<uint32_t>(random_() % 2));
    written_.resize(kPages * kWords);
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

  static std::vector<uint64_t> initial() {
    std::vector<uint64_t> words(kPages * kWords);
    for (uint64_t i = 0; i < words.size(); ++i) words[i] = i << 16;
    return words;
  }

  bool bad(uint64_t page) const { return drive_.answer && page % 8 == 7; }

  void live(uint32_t thread) {
    std::mt19937 random(seed_ + thread);
    // All lanes of the warp.
    for (uint32_t turn = 0; turn < 3; ++turn) {
      read_pages(turn % 2 == 0 ? random() % kPages : (thread / 32 + turn) % kPages);
      read_one_page((thread / 32 * 5 + turn) % kPages);
    }
    if (random() % 4 == 0) return;  // The others go on without it.
    for (uint32_t turn = 0; turn < 3; ++turn) {
      if (random() % 2 == 0) continue;
      const uint64_t index = random() % (kPages * kWords) / threads_ * threads_ + thread;
      if (index < kPages * kWords) count_up(index);
    }
  }

  // Each lane a page of its own.
  void read_pages(uint64_t page) {
    PageCache cache(view_, &errors_);
    const PageId id{1, 1, page};
    const ReadGuard guard = ReadGuard::many(cache, Lanes::warp(), id, queue_, kLong);
    if (guard.status() == status::kAllPagesPinned) return;
    check_page(guard, page);
  }

  // All lanes the same.
  void read_one_page(uint64_t page) {
    PageCache cache(view_, &errors_);
    const PageId id{1, 1, page};
    const ReadGuard guard = ReadGuard::one(cache, Lanes::warp(), id, queue_, kLong);
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
    Array<uint64_t, SlowQueue> array(array_, queue_);
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
    for (uint64_t i = 0; i < kPages * kWords; ++i) {
      uint64_t value;
      std::memcpy(&value, &drive_.bytes[8 * i], 8);
      CHECK(value == (i << 16) + written_[i]);
    }
  }

  std::mt19937 random_;
  PageCacheConfig config_;
  std::vector<byte> memory_;
  PageCacheView view_;
  FakeDrive drive_;
  SlowQueue queue_;
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
    bamquery::Round(number).run(number);
  }
  std::puts("all warp cache tests passed");
}
