// Work that threads share: all of it is done, once, before the call returns; faults come to who asked.

#include "driver/native/threads/shared_work.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "driver/native/threads/thread_budget.hpp"
#include "driver/native/threads/thread_pool.hpp"
#include "tests/native/check.hpp"

namespace {

using namespace bamquery;

struct WorkingFor {
  explicit WorkingFor(int threads) : budget(std::make_shared<ThreadBudget>(threads)) {
    ThreadBudget::begin(budget);
  }
  ~WorkingFor() { ThreadBudget::end(); }
  std::shared_ptr<ThreadBudget> budget;
};

void each_item_once() {
  for (const int threads : {1, 2, 5}) {
    const WorkingFor query(threads);
    for (const std::int64_t items : {0, 1, 7, 100, 4096, 100'003}) {
      for (const std::int64_t parts : {1, 2, 3, 16}) {
        for (const std::int64_t block : {1, 64}) {
          std::vector<int> done(
              static_cast<std::size_t>(items));  // of no atomics: whoever waits sees them all
          share_items(items, parts, block, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
            CHECK(part < parts && (count == 0 || first % block == 0));
            for (std::int64_t i = first; i < first + count; ++i) ++done[static_cast<std::size_t>(i)];
          });
          for (const int times : done) CHECK(times == 1);
        }
      }
    }
    CHECK(query.budget->free() == threads - 1);
  }
}

void by_threads_that_are_free() {
  const WorkingFor query(3);
  CHECK(sharing_threads() == 3);
  CHECK(worth_parts(100, 10) == 3 && worth_parts(25, 10) == 2 && worth_parts(9, 10) == 1);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> here{0};
  share_parts(3, [&](std::int64_t) {
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    ++here;
    // All three are there at once; helpers work for no query, so that nothing is shared twice.
    while (here.load() < 3) std::this_thread::yield();
    CHECK(ThreadBudget::current() == nullptr || sharing_threads() == 1);
  });
  CHECK(seen.size() == 3);

  CHECK(query.budget->borrow(5) == 2 && query.budget->borrow(1) == 0);
  share_parts(3, [&](std::int64_t) { CHECK(ThreadBudget::current() == query.budget); });  // all by this one
  query.budget->give_back(2);
  std::thread([&] {
    ThreadBudget::begin(query.budget);
    CHECK(query.budget->free() == 1);
    ThreadBudget::end();
    CHECK(sharing_threads() == 1);
  }).join();
  CHECK(query.budget->free() == 2);
}

void failures() {
  const WorkingFor query(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> begun{0};
    bool raised = false;
    try {
      share_parts(64, [&](std::int64_t part) {
        ++begun;
        if (part == round % 64) throw std::runtime_error("part");
      });
    } catch (const std::runtime_error&) {
      raised = true;
    }
    CHECK(raised && begun > 0);
    const int after = begun;
    std::this_thread::yield();
    CHECK(begun == after);  // nobody is at work any more
    CHECK(query.budget->free() == 3);
  }
}

void helpers_that_come_late() {
  const WorkingFor query(64);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> done(64);
    share_parts(64, [&](std::int64_t part) { done[static_cast<std::size_t>(part)] = part; });
    for (std::size_t i = 0; i < done.size(); ++i) CHECK(done[i] == static_cast<std::int64_t>(i));
  }
}

void in_a_child() {
  const pid_t child = fork();
  if (child == 0) {
    const WorkingFor query(3);
    std::atomic<int> here{0};
    share_parts(3, [&](std::int64_t) {
      ++here;
      while (here.load() < 3) std::this_thread::yield();
    });
    _exit(here == 3 ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main(int count, char**) {
  each_item_once();
  by_threads_that_are_free();
  failures();
  helpers_that_come_late();
  if (count == 1) in_a_child();  // which sanitizers of races do not follow
  std::puts("all tests of shared work passed");
}
