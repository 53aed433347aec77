// Benchmarks' clients on every path, for sanitizers: threads that share what they should and nothing else.

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "driver/native/bench/block.hpp"
#include "driver/native/bench/cache.hpp"
#include "driver/native/bench/controller.hpp"
#include "driver/native/bench/latency_histogram.hpp"
#include "driver/native/controller/software_controller.hpp"
#include "tests/native/check.hpp"

namespace {

using namespace bamquery;

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kSeed = 3;

BlockJob job_of(std::uint32_t clients, double write_share, std::uint64_t seed = kSeed) {
  return {4096,        clients, 8,   AccessPattern::of(AccessOrder::kRandom, kBytes / 4096, clients, 1, 1),
          write_share, seed,    true};
}

RingOptions rings(std::uint32_t pairs, std::uint32_t threads, bool writable) {
  RingOptions options;
  options.pairs = pairs;
  options.depth = 8;
  options.threads = threads;
  options.writable = writable;
  return options;
}

ClientsResult run(std::uint32_t clients, BenchClients::Work work) {
  BenchClients running(clients, std::move(work));
  while (running.operations() < 200 && !running.finished()) std::this_thread::yield();
  return running.stop();
}

void test_histogram() {
  std::mt19937_64 random(1);
  LatencyHistogram first, second;
  std::vector<std::uint64_t> times;
  for (int i = 0; i < 10'000; ++i) {
    times.push_back(random() >> random() % 60);
    (i % 2 == 0 ? first : second).add(times.back());
  }
  first.merge(second);
  std::ranges::sort(times);
  CHECK(first.total() == times.size());
  CHECK(first.max() == times.back());
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const std::uint64_t exact = times[static_cast<std::size_t>(share * 10'000)];
    CHECK(first.percentile(share) >= exact);
    CHECK(static_cast<double>(first.percentile(share)) <= static_cast<double>(exact) * 1.125 + 1);
  }
  CHECK(LatencyHistogram().percentile(0.5) == 0);
}

void test_clients() {
  BenchClients failing(3, [](std::uint32_t client, const std::atomic<bool>&, ClientTally&) {
    if (client == 1) throw std::runtime_error("client 1");
  });
  bool thrown = false;
  try {
    failing.stop();
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  // One that nobody stops ends with its owner.
  const BenchClients forgotten(2, [](std::uint32_t, const std::atomic<bool>& stop, ClientTally& tally) {
    while (!stop.load(std::memory_order_relaxed)) tally.add(1, 1);
  });
}

void test_blocks() {
  const BenchBacking backing("", kBytes, true);
  WrittenBlocks none(kBytes / 4096);
  backing.fill(kSeed);
  for (const std::uint32_t threads : {0u, 2u}) {
    BenchController controller(backing, rings(3, threads, false));
    const ClientsResult result = run(3, rings_work(job_of(3, 0), controller.rings(), none));
    CHECK(result.operations >= 200 && result.errors == 0 && result.mismatches == 0);
    CHECK(controller.counts().reads == result.operations);
  }
  CHECK(run(3, mapped_work(job_of(3, 0), backing, none)).mismatches == 0);
  const ClientsResult wrong = run(1, mapped_work(job_of(1, 0, kSeed + 5), backing, none));
  CHECK(wrong.mismatches == wrong.operations);
  // Writes of one client only: NVMe orders nothing between those of several.
  for (const std::uint32_t threads : {0u, 1u}) {
    backing.fill(kSeed);
    WrittenBlocks written(kBytes / 4096);
    BenchController controller(backing, rings(1, threads, true));
    const ClientsResult result = run(1, rings_work(job_of(1, 0.5), controller.rings(), written));
    controller.stop();
    CHECK(result.errors == 0 && result.mismatches == 0);
    CHECK(backing.check(kSeed, kSeed + 1, 4096, written) == -1);
    CHECK(backing.check(kSeed, kSeed + 1, 4096, none) >= 0);
  }
}

void test_refusals() {
  const BenchBacking backing("", kBytes, true);
  backing.fill(kSeed);
  WrittenBlocks written(kBytes / 4096);
  BenchController controller(backing, rings(1, 1, false));
  BenchClients running(1, rings_work(job_of(1, 1), controller.rings(), written));
  while (!running.finished()) std::this_thread::yield();  // it gives up by itself
  const ClientsResult result = running.stop();
  CHECK(result.operations == 0 && result.errors >= 1000);
  CHECK(result.first_error.find("write at byte") == 0);
  CHECK(backing.check(kSeed, kSeed + 1, 4096, written) == -1);
}

// Several controllers over contents of their own, as one address space.
void test_cache(std::uint32_t count) {
  constexpr std::uint32_t kLbas[] = {512, 4096, 512};
  std::vector<std::unique_ptr<BenchBacking>> backings;
  for (std::uint32_t drive = 0; drive < count; ++drive) {
    backings.push_back(std::make_unique<BenchBacking>("", kBytes, true));
    backings.back()->fill(kSeed + 2 * drive);
  }
  for (const std::uint32_t threads : {0u, 2u}) {
    std::vector<std::unique_ptr<QueueMemory>> memories;
    std::vector<std::unique_ptr<SoftwareController>> controllers;
    {
      std::vector<std::unique_ptr<BenchRings>> served;
      for (std::uint32_t drive = 0; drive < count; ++drive) {
        const QueueShape shape{.leased_pairs = 3,
                               .shared_pairs = 0,
                               .depth = 8,
                               .slots = 7,
                               .slot_bytes = 4096,
                               .block_bytes = kLbas[drive]};
        memories.push_back(std::make_unique<QueueMemory>(shape));
        ControllerOptions options;
        options.threads = static_cast<int>(threads);
        controllers.push_back(std::make_unique<SoftwareController>(*memories.back(), options));
        SoftwareController& controller = *controllers.back();
        controller.add_namespace(Namespace::borrowed(backings[drive]->bytes(), kLbas[drive], false));
        if (threads != 0) controller.start();
        served.push_back(std::make_unique<BenchRings>(*memories.back(), controller, 1, 10'000'000'000, true));
      }
      BenchDrives drives(std::move(served), 16384, 4096);
      BenchCache cache(kBytes / 4, 4096, drives.block_bytes(), count * kBytes);
      warm_cache(cache, drives);
      CHECK(cache.counters().misses == count * kBytes / 4096);
      const CacheJob pages{AccessPattern::of(AccessOrder::kZipf, cache.pages(), 3, 1, 0.9), kSeed, true};
      const ClientsResult found = run(3, cache_work(pages, cache, drives));
      CHECK(found.operations >= 200 && found.errors == 0 && found.mismatches == 0);
      const ArrayJob elements{AccessPattern::of(AccessOrder::kRandom, count * kBytes / 2, 3, 1, 1), "int16",
                              kSeed, true};
      const ClientsResult gathered = run(3, array_work(elements, cache, drives));
      CHECK(gathered.operations >= 200 && gathered.errors == 0 && gathered.mismatches == 0);
      std::uint64_t commands = 0;
      for (std::uint32_t drive = 0; drive < count; ++drive) {
        CHECK(drives.rings(drive).counts().commands > 0);
        commands += drives.rings(drive).counts().commands;
      }
      CHECK(commands == cache.counters().misses);
    }
  }
}

}  // namespace

int main() {
  test_histogram();
  test_clients();
  test_blocks();
  test_refusals();
  for (const std::uint32_t drives : {1u, 2u, 3u}) test_cache(drives);
  std::puts("all benchmark tests passed");
}
