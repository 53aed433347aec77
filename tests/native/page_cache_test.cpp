// The page cache on threads, over a drive in memory: small caches, many threads, failing reads and writes.

#include "driver/core/page_cache/page_cache.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "driver/core/array/array.hpp"
#include "driver/core/page_cache/page_guard.hpp"
#include "tests/native/rings/fake_drive.hpp"

namespace {

using namespace bamquery;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

constexpr uint32_t kPageBytes = 1024;
constexpr uint32_t kWords = kPageBytes / sizeof(uint64_t);
const Lanes kAlone = Lanes::warp();

constexpr uint64_t kSoon = 20'000'000'000;

/// A cache, and the drive under it, whose words say where they are.
struct Bench {
  Bench(uint32_t cached, uint64_t pages)
      : config{cached, kPageBytes, 512},
        memory(page_cache_bytes(config) + 4096),
        view(make_page_cache(aligned(), config)),
        drive(pages * (kPageBytes / 512)),
        queue(drive, kPageBytes),
        cache(view, &errors) {
    for (uint64_t word = 0; word < pages * kWords; ++word) write_word(word, word);
  }

  byte* aligned() {
    return memory.data() + (4096 - reinterpret_cast<uintptr_t>(memory.data()) % 4096) % 4096;
  }
  void write_word(uint64_t index, uint64_t value) { std::memcpy(&drive.bytes[8 * index], &value, 8); }
  uint64_t word(uint64_t index) const {
    uint64_t value;
    std::memcpy(&value, &drive.bytes[8 * index], 8);
    return value;
  }
  ReadGuard read(uint64_t page) { return ReadGuard::one(cache, kAlone, id(page), queue, kSoon); }
  WriteGuard write(uint64_t page) { return WriteGuard::one(cache, kAlone, id(page), queue, kSoon); }
  Status flush() { return cache.flush(kAlone, 0, 1, queue, Deadline::in(kSoon)); }
  uint64_t total(uint64_t CacheCounters::* counter) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PageCacheView::kStripes; ++i) sum += view.counters[i].*counter;
    return sum;
  }
  static PageId id(uint64_t page) { return {1, kPageBytes / 512, page}; }

  /// No thread runs: nothing is pinned or on its way, every chain holds valid pages of its own, no page
  /// twice.
  void check_at_rest() const {
    std::set<uint64_t> keys;
    std::set<uint32_t> linked;
    const PageTable table(view.slots, view.heads, view.nexts, view.page_count);
    for (uint32_t bucket = 0; bucket < view.page_count; ++bucket) {
      CHECK((view.heads[bucket] & (PageTable::kLocked | PageTable::kInserting)) == 0);
      for (uint32_t link = view.heads[bucket]; link != 0; link = view.nexts[link - 1]) {
        CHECK(linked.insert(link - 1).second);
        CHECK(table.bucket(view.slots[link - 1].key) == bucket);
        CHECK(keys.insert(view.slots[link - 1].key).second);
      }
    }
    for (uint32_t slot = 0; slot < view.page_count; ++slot) {
      const PageState state{view.slots[slot].state};
      CHECK(state.pins() == 0 && state.writers() == 0 && !state.has(PageState::kCleaning));
      CHECK(state.phase() == Phase::kEmpty || state.phase() == Phase::kValid);
      CHECK(state.phase() == Phase::kEmpty || linked.count(slot) == 1);
    }
  }

  PageCacheConfig config;
  std::vector<byte> memory;
  PageCacheView view;
  ErrorRecord errors{};
  FakeDrive drive;
  FakeQueue queue;
  PageCache cache;
};

template <typename Work>
void in_threads(uint32_t count, Work work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

void check_page(const ReadGuard& guard, uint64_t page) {
  CHECK(guard.status().ok());
  CHECK(guard.size<uint64_t>() == kWords);
  for (uint32_t i = 0; i < kWords; i += 13) {
    uint64_t value;
    CHECK(guard.load(i, value).ok() && value == page * kWords + i);
  }
}

void test_reads_each_page_once() {
  for (const uint32_t cached : {1u, 2u, 4u, 64u}) {
    Bench bench(cached, 64);
    for (uint64_t page = 0; page < 64; ++page) {
      check_page(bench.read(page), page);
      check_page(bench.read(page), page);
    }
    CHECK(bench.drive.reads == 64);
    CHECK(bench.total(&CacheCounters::hits) == 64);
    CHECK(bench.total(&CacheCounters::misses) == 64);
    CHECK(bench.total(&CacheCounters::evictions) == 64 - cached);
    bench.check_at_rest();
  }
}

void test_bounds() {
  Bench bench(2, 4);
  uint64_t value = 1;
  {
    const ReadGuard guard = bench.read(3);
    CHECK(guard.load(kWords, value) == status::kOutOfBounds && value == 0);
  }
  {
    WriteGuard guard = bench.write(3);
    CHECK(guard.store<uint64_t>(kWords, 1) == status::kOutOfBounds);
    CHECK(guard.store<uint8_t>(kPageBytes, 1) == status::kOutOfBounds);
    CHECK(guard.store<uint8_t>(kPageBytes - 1, 1).ok());
  }
  // A page that the namespace's end cuts short.
  const ReadGuard last = ReadGuard::one(bench.cache, kAlone, {1, 1, 2}, bench.queue, kSoon);
  CHECK(last.status().ok() && last.bytes() == 512);
  for (const PageId& wrong : {PageId{0, 1, 0}, PageId{1 << 16, 1, 0}, PageId{1, 1, 0, 256}, PageId{1, 0, 0},
                              PageId{1, 3, 0}, PageId{1, 1, 1ull << 40}}) {
    CHECK(ReadGuard::one(bench.cache, kAlone, wrong, bench.queue, kSoon).status() == status::kTooLarge);
  }
}

void test_all_pinned() {
  for (const uint32_t cached : {1u, 2u, 5u}) {
    Bench bench(cached, 16);
    {
      std::vector<ReadGuard> guards;
      for (uint64_t page = 0; page < cached; ++page) guards.push_back(bench.read(page));
      for (int turn = 0; turn < 3; ++turn) {
        CHECK(bench.read(15).status() == status::kAllPagesPinned);
        CHECK(bench.write(15).status() == status::kAllPagesPinned);
      }
      check_page(bench.read(0), 0);  // Pages that are there still are.
      guards.pop_back();
      check_page(bench.read(15), 15);
    }
    bench.check_at_rest();
  }
}

void test_second_use_earns_a_second_chance() {
  Bench bench(4, 64);
  check_page(bench.read(0), 0);
  for (uint64_t page = 1; page < 64; ++page) {
    check_page(bench.read(0), 0);
    check_page(bench.read(page), page);
  }
  CHECK(bench.drive.reads == 64);
}

void test_many_missers_one_read() {
  for (const uint32_t cached : {1u, 4u}) {
    for (uint64_t turn = 0; turn < 200; ++turn) {
      Bench bench(cached, 8);
      in_threads(4, [&](uint32_t) { check_page(bench.read(turn % 8), turn % 8); });
      CHECK(bench.drive.reads == 1);
      CHECK(bench.total(&CacheCounters::misses) == 1);
      CHECK(bench.total(&CacheCounters::hits) + bench.total(&CacheCounters::coalesced) == 3);
      bench.check_at_rest();
    }
  }
}

void test_failed_reads() {
  Bench bench(2, 8);
  bench.drive.answer = [](const Request& request) {
    return request.lba == 4 ? status::kUnrecoveredRead : status::kSuccess;
  };
  for (int turn = 0; turn < 5; ++turn) {
    CHECK(bench.read(2).status() == status::kUnrecoveredRead);
    CHECK(bench.write(2).status() == status::kUnrecoveredRead);
    check_page(bench.read(3), 3);
  }
  CHECK(bench.total(&CacheCounters::failures) == 10);
  bench.check_at_rest();
  // All who wait for a failing read are told, and the next try reads anew.
  std::atomic<uint32_t> failed{0};
  in_threads(4, [&](uint32_t) {
    for (int turn = 0; turn < 300; ++turn) {
      if (bench.read(2).status() == status::kUnrecoveredRead) failed.fetch_add(1);
      const ReadGuard good = bench.read(3);
      if (!(good.status() == status::kAllPagesPinned)) check_page(good, 3);
    }
  });
  CHECK(failed > 0);
  bench.check_at_rest();
  bench.drive.answer = nullptr;
  check_page(bench.read(2), 2);
}

void test_write_back_on_eviction() {
  Bench bench(2, 16);
  for (uint64_t page = 0; page < 16; ++page) {
    CHECK(bench.write(page).store<uint64_t>(5, 1000 + page).ok());
  }
  CHECK(bench.drive.writes == 14);
  CHECK(bench.flush().ok());
  CHECK(bench.drive.writes == 16);
  CHECK(bench.flush().ok());
  CHECK(bench.drive.writes == 16);  // Nothing is dirty.
  CHECK(bench.total(&CacheCounters::write_backs) == 16);
  for (uint64_t word = 0; word < 16 * kWords; ++word) {
    CHECK(bench.word(word) == (word % kWords == 5 ? 1000 + word / kWords : word));
  }
  bench.check_at_rest();
}

void test_failed_writes_lose_nothing() {
  Bench bench(2, 16);
  CHECK(bench.write(0).store<uint64_t>(0, 77).ok());
  bench.drive.answer = [](const Request& request) {
    return request.opcode == Opcode::kWrite ? status::kWriteFault : status::kSuccess;
  };
  CHECK(bench.flush() == status::kWriteFault);
  for (uint64_t page = 1; page < 16; ++page) check_page(bench.read(page), page);  // Goes round the dirty one.
  CHECK(bench.write(1).store<uint64_t>(0, 78).ok());
  CHECK(bench.read(2).status() == status::kWriteFault);  // Both are dirty, and neither can go.
  bench.drive.answer = nullptr;
  CHECK(bench.flush().ok());
  CHECK(bench.word(0) == 77 && bench.word(kWords) == 78);
  bench.check_at_rest();
}

void test_write_that_may_still_happen() {
  Bench bench(2, 16);
  CHECK(bench.write(0).store<uint64_t>(0, 77).ok());
  bench.drive.answer = [](const Request& request) {
    return request.opcode == Opcode::kWrite ? status::kDeadlineMissed : status::kSuccess;
  };
  CHECK(bench.flush() == status::kDeadlineMissed);
  bench.drive.answer = nullptr;
  // A second write could be overtaken by the first: the page stays, readable and reported.
  CHECK(bench.flush() == status::kDeadlineMissed);
  CHECK(bench.write(0).status() == status::kDeadlineMissed);
  uint64_t value;
  CHECK(bench.read(0).load(0, value).ok() && value == 77);
  for (uint64_t page = 1; page < 16; ++page) check_page(bench.read(page), page);
  CHECK(bench.drive.writes == 0);
}

/// Every thread owns some words of every page and counts them up, while pages are evicted and flushed.
void test_no_write_is_lost(uint32_t cached, bool flushes) {
  constexpr uint32_t kThreads = 4, kPages = 6, kTurns = 1500;
  Bench bench(cached, kPages);
  for (uint64_t word = 0; word < kPages * kWords; ++word) bench.write_word(word, 0);
  std::vector<std::vector<uint64_t>> expected(kThreads, std::vector<uint64_t>(kPages));
  in_threads(kThreads, [&](uint32_t thread) {
    std::mt19937_64 random(thread);
    for (uint32_t turn = 0; turn < kTurns;) {
      const uint64_t page = random() % kPages;
      if (flushes && thread == 0 && turn % 8 == 0) CHECK(bench.flush().ok());
      WriteGuard guard = bench.write(page);
      if (guard.status() == status::kAllPagesPinned) continue;
      CHECK(guard.status().ok());
      uint64_t left, right;
      CHECK(guard.load(thread, left).ok() && guard.load(kWords - 1 - thread, right).ok());
      CHECK(left == expected[thread][page] && right == left);  // Both halves of a page are of one time.
      CHECK(guard.store(thread, left + 1).ok() && guard.store(kWords - 1 - thread, left + 1).ok());
      ++expected[thread][page];
      ++turn;
    }
  });
  CHECK(bench.flush().ok());
  bench.check_at_rest();
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    for (uint64_t page = 0; page < kPages; ++page) {
      CHECK(bench.word(page * kWords + thread) == expected[thread][page]);
    }
  }
}

/// A flush under way never writes half of what a guard does.
void test_flush_does_not_tear() {
  Bench bench(1, 1);
  {
    WriteGuard guard = bench.write(0);
    for (uint32_t i = 0; i < kWords; ++i) CHECK(guard.store<uint64_t>(i, 0).ok());
  }
  std::atomic<uint32_t> writing{2};
  in_threads(3, [&](uint32_t thread) {
    if (thread == 0) {
      while (writing != 0) {
        CHECK(bench.flush().ok());
        bench.drive.look([](const std::vector<byte>& bytes) {
          for (size_t at = 8; at < bytes.size(); at += 8) CHECK(std::memcmp(&bytes[0], &bytes[at], 8) == 0);
        });
      }
      return;
    }
    for (uint64_t turn = 1; turn < 2000; ++turn) {
      WriteGuard guard = bench.write(0);
      CHECK(guard.status().ok());
      if (thread == 1) {  // The other one only comes and goes.
        for (uint32_t i = 0; i < kWords; ++i) CHECK(guard.store<uint64_t>(i, turn).ok());
      }
    }
    writing.fetch_sub(1);
  });
}

/// All threads read pages that come and go, some of them failing, through guards held two at a time.
void test_hot_eviction() {
  for (const uint32_t cached : {2u, 4u, 16u}) {
    Bench bench(cached, 32);
    bench.drive.answer = [](const Request& request) {
      return request.lba == 2 * 7 ? status::kUnrecoveredRead : status::kSuccess;
    };
    in_threads(4, [&](uint32_t thread) {
      std::mt19937_64 random(thread);
      for (uint32_t turn = 0; turn < 3000; ++turn) {
        const uint64_t first = random() % 32, second = random() % 32;
        const ReadGuard one = bench.read(first);
        const ReadGuard two = bench.read(second);
        const auto check = [](const ReadGuard& guard, uint64_t page) {
          if (guard.status() == status::kAllPagesPinned) return;
          if (page == 7) {
            CHECK(guard.status() == status::kUnrecoveredRead);
          } else {
            check_page(guard, page);
          }
        };
        check(one, first);
        check(two, second);
      }
    });
    bench.check_at_rest();
  }
}

/// Elements of one type at an extent that starts in the middle of a page, against a plain vector.
template <typename T>
void test_array(uint32_t cached) {
  Bench bench(cached, 8);
  constexpr uint64_t kCount = 3 * kPageBytes / sizeof(T) + 5;
  const ArrayExtent extent{1, 512 + 64, kCount * sizeof(T), 16, 1, 0};
  const uint64_t start = 512 + 512 + 64;
  ArrayView view{bench.view, extent, &bench.errors, kCount, kSoon, 1, 0};
  std::vector<T> model(kCount);
  std::memcpy(model.data(), &bench.drive.bytes[start], kCount * sizeof(T));
  Array<T, FakeQueue> array(view, bench.queue);
  std::mt19937_64 random(sizeof(T));
  for (int turn = 0; turn < 2000; ++turn) {
    const uint64_t index = random() % kCount;
    if (turn % 3 == 0) {
      model[index] = static_cast<T>(random());
      array[index] = model[index];
    } else {
      const T value = array[index];
      CHECK(std::memcmp(&value, &model[index], sizeof(T)) == 0);
    }
  }
  std::vector<uint64_t> indices(100);
  for (uint64_t& index : indices) index = random() % kCount;
  std::vector<T> gathered(100);
  for (uint64_t part = 0; part < 3; ++part) {
    CHECK(array.gather(kAlone, part, 3, indices.data(), gathered.data(), 100).ok());
  }
  for (uint64_t i = 0; i < 100; ++i) CHECK(std::memcmp(&gathered[i], &model[indices[i]], sizeof(T)) == 0);
  CHECK(bench.errors.count == 0);

  T value = model[0];
  CHECK(array.read(kCount, value) == status::kOutOfBounds && value == T{});
  CHECK(array.write(~uint64_t{0}, value) == status::kOutOfBounds);
  CHECK(bench.errors.count == 2 && Status{bench.errors.status} == status::kOutOfBounds &&
        bench.errors.nsid == 1);
  view.writable = 0;
  CHECK(array.write(0, value) == status::kReadOnly);

  CHECK(bench.flush().ok());
  CHECK(std::memcmp(model.data(), &bench.drive.bytes[start], kCount * sizeof(T)) == 0);
  bench.check_at_rest();
}

/// More threads than pages: accesses hold nothing while they wait, so all of them get through.
void test_array_on_threads() {
  constexpr uint32_t kThreads = 4;
  Bench bench(1, 8);
  const ArrayExtent extent{0, 0, 8 * kPageBytes, 16, 1, 0};
  const ArrayView view{bench.view, extent, &bench.errors, 8 * kWords, kSoon, 1, 0};
  in_threads(kThreads, [&](uint32_t thread) {
    Array<uint64_t, FakeQueue> array(view, bench.queue);
    for (uint64_t index = thread; index < 8 * kWords; index += kThreads) {
      const uint64_t other = (index * 257) % (8 * kWords) / kThreads * kThreads + thread;
      array[index] = array[index] + 1;
      CHECK(array[other] == other + (other <= index ? 1 : 0));
    }
  });
  CHECK(bench.errors.count == 0);
  CHECK(bench.flush().ok());
  for (uint64_t word = 0; word < 8 * kWords; ++word) CHECK(bench.word(word) == word + 1);
  bench.check_at_rest();
}

void test_array_errors() {
  Bench bench(2, 8);
  bench.drive.answer = [](const Request& request) {
    return request.lba == 6 ? status::kUnrecoveredRead : status::kSuccess;
  };
  const ArrayExtent extent{4, 0, 4 * kPageBytes, 16, 1, 0};
  const ArrayView view{bench.view, extent, &bench.errors, 4 * kWords, kSoon, 1, 0};
  Array<uint64_t, FakeQueue> array(view, bench.queue);
  CHECK(array[0] == 2 * kWords);
  CHECK(array[kWords] == 0);
  CHECK(bench.errors.count > 0 && Status{bench.errors.status} == status::kUnrecoveredRead);
  CHECK(bench.errors.nsid == 1 && bench.errors.lba == 6 && bench.errors.blocks == 2);
  CHECK(array[2 * kWords] == 4 * kWords);
}

}  // namespace

int main() {
  test_reads_each_page_once();
  test_bounds();
  test_all_pinned();
  test_second_use_earns_a_second_chance();
  test_many_missers_one_read();
  test_failed_reads();
  test_write_back_on_eviction();
  test_failed_writes_lose_nothing();
  test_write_that_may_still_happen();
  for (const uint32_t cached : {1u, 2u, 6u}) {
    test_no_write_is_lost(cached, false);
    test_no_write_is_lost(cached, true);
  }
  test_flush_does_not_tear();
  test_hot_eviction();
  for (const uint32_t cached : {1u, 3u, 8u}) {
    test_array<uint8_t>(cached);
    test_array<int16_t>(cached);
    test_array<float>(cached);
    test_array<uint32_t>(cached);
    test_array<int64_t>(cached);
    test_array<double>(cached);
  }
  test_array_on_threads();
  test_array_errors();
  std::puts("all page cache tests passed");
}
