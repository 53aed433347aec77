// Memory that is kept once it is given back.
#include "driver/native/memory/large_memory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "driver/native/memory/large_vector.hpp"
#include "driver/native/unset_vector.hpp"
#include "tests/native/check.hpp"

namespace {

using namespace bamquery;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Whether anything is kept: under AddressSanitizer, which looks for uses of what was given back, nothing is.
bool keeps() {
  keep_large(64 * kMiB);
  give_large(take_large(kMiB));
  const bool found = large_memory().kept > 0;
  release_large(0);
  return found;
}

void test_blocks() {
  keep_large(64 * kMiB);
  for (const std::size_t size : {kMiB, kMiB + 1, 2 * kMiB - 1, 2 * kMiB, 5 * kMiB + 7, 100 * kMiB}) {
    bool is_zero = false;
    std::byte* const block = take_large(size, &is_zero);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0);
    CHECK(large_size(block) >= size && large_size(block) <= size + size / 8);
    CHECK(large_memory().in_use == large_size(block));
    if (is_zero) CHECK(std::all_of(block, block + size, [](std::byte one) { return one == std::byte{0}; }));
    std::memset(block, 1, size);
    CHECK(!give_large(block + 4096));
    CHECK(large_size(block + 4096) == 0);
    CHECK(give_large(block));
    CHECK(large_memory().in_use == 0);
    release_large(0);
    CHECK(large_memory().kept == 0);
  }
  int other = 0;
  CHECK(!give_large(&other) && !give_large(nullptr) && large_size(&other) == 0);
}

void test_kept_blocks() {
  keep_large(16 * kMiB);
  std::byte* const first = take_large(4 * kMiB);
  std::byte* const second = take_large(5 * kMiB);
  std::byte* const third = take_large(8 * kMiB);
  give_large(first);
  give_large(second);
  CHECK(large_memory().kept == 9 * kMiB);
  bool is_zero = true;
  CHECK(take_large(4 * kMiB - 5, &is_zero) == first && !is_zero);  // the smallest that does
  CHECK(take_large(4 * kMiB, &is_zero) == second && !is_zero);
  give_large(second);
  std::byte* const fresh = take_large(2 * kMiB);  // no other is that much larger
  CHECK(fresh != second);
  give_large(fresh);
  give_large(third);
  CHECK(large_memory().kept == 15 * kMiB);
  give_large(first);  // one too many: the one that was given back before all others goes
  CHECK(large_memory().kept == 14 * kMiB);
  give_large(take_large(17 * kMiB));  // never kept
  CHECK(large_memory().kept == 14 * kMiB);
  release_large(10 * kMiB);
  CHECK(large_memory().kept == 4 * kMiB);
  CHECK(take_large(4 * kMiB) == first);
  give_large(first);
  keep_large(0);
  CHECK(large_memory().kept == 0 && large_memory().in_use == 0);
}

void test_no_such_size() {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8}) {
    bool is_refused = false;
    try {
      take_large(size);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    CHECK(is_refused);
  }
  CHECK(large_memory().in_use == 0);
}

void test_vectors() {
  LargeVector<std::int64_t> zeros(kMiB);
  CHECK(large_memory().in_use >= 8 * kMiB);
  CHECK(std::count(zeros.begin(), zeros.end(), 0) == static_cast<std::ptrdiff_t>(kMiB));
  LargeVector<std::int64_t> moved = std::move(zeros);
  LargeVector<std::int64_t> few(10), many;
  for (std::size_t i = 0; i < kMiB; ++i) many.push_back(static_cast<std::int64_t>(i));
  CHECK(many[kMiB - 1] == static_cast<std::int64_t>(kMiB) - 1);
  UnsetVector<std::uint8_t> bytes(3 * kMiB);
  bytes.resize(kMiB);
  bytes = {};
  moved = {};
  many = {};
  many.shrink_to_fit();
  moved.shrink_to_fit();
  bytes.shrink_to_fit();
  CHECK(large_memory().in_use == 0);
}

// Each block belongs to one thread at a time, whoever gives it back.
void test_threads() {
  constexpr int kThreads = 4, kRounds = 400;
  keep_large(24 * kMiB);
  std::mutex mutex;
  std::vector<std::pair<std::byte*, std::byte>> held;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t size = (1 + static_cast<std::size_t>((round * 7 + number) % 5)) * kMiB;
        std::byte* block = take_large(size);
        auto mark = static_cast<std::byte>(number * 64 + round % 64);
        block[0] = block[size - 1] = mark;
        {
          const std::scoped_lock lock(mutex);
          held.emplace_back(block, mark);
          std::swap(held.front(), held.back());
          std::tie(block, mark) = held.back();
          held.pop_back();
        }
        CHECK(block[0] == mark);
        CHECK(give_large(block));
        if (round % 50 == 0) release_large(4 * kMiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [block, mark] : held) give_large(block);
  release_large(0);
  CHECK(large_memory().in_use == 0 && large_memory().kept == 0);
}

void test_fork() {
  std::byte* const block = take_large(kMiB);
  block[0] = std::byte{7};
  const pid_t child = fork();
  if (child == 0) {
    const bool is_there = block[0] == std::byte{7} && give_large(block);
    give_large(take_large(3 * kMiB));
    _exit(is_there ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(give_large(block));
}

}  // namespace

int main() {
  test_blocks();
  if (keeps()) {
    test_kept_blocks();
    test_no_such_size();
  }
  test_vectors();
  test_fork();
  test_threads();
  std::puts("all tests of large memory passed");
}
