#include "driver/native/bench/cache.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "driver/core/array/array.hpp"
#include "driver/core/page_cache/page_guard.hpp"
#include "driver/core/queues/drive_queues.hpp"
#include "driver/native/bench/backing.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/queues/serviced_pair.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kMostErrors = 1000;
constexpr std::size_t kGatherElements = 512;

// Who waits for a command of a controller without threads does its work.
using ServingPair = ServicedPair<Scope::kBlock>;

// A client's pairs of several drives: LeasedPairs, whose waits serve controllers as well.
class ServingPairs {
 public:
  ServingPairs(const LeasedPairs& leases, const BenchDrives& drives) : leases_(leases), drives_(drives) {}

  ServingPair at(std::uint32_t drive) const { return {leases_.at(drive), drives_.rings(drive).controller()}; }
  std::uint32_t lba_bytes(std::uint32_t drive) const { return leases_.lba_bytes(drive); }

  template <typename Group>
  std::uint32_t sweep(Group group) const {
    std::uint32_t swept = 0;
    for (std::uint32_t drive = 0; drive < drives_.count(); ++drive) swept += at(drive).sweep(group);
    return swept;
  }

 private:
  const LeasedPairs& leases_;
  const BenchDrives& drives_;
};

void note_lease(ClientTally& tally, const char* what, Status status) {
  if (!status.ok()) tally.fail(what + status_text(status));
}

// Runs `work(queue)` with a leased queue pair, of several drives with one of each.
template <typename Work>
void with_pairs(BenchDrives& drives, ClientTally& tally, Work work) {
  const Deadline deadline = Deadline::in(drives.deadline_ns());
  if (drives.count() == 1) {
    BenchRings& rings = drives.rings(0);
    const AlignedBuffer flags = allocate_aligned(rings.pool().flags_bytes);
    BlockLease lease(rings.pool(), flags.get());
    const Status leased = lease.begin(deadline);
    note_lease(tally, "no queue pair: ", leased);
    if (!leased.ok()) return;
    ServingPair pair(lease.pair(), rings.controller());
    work(pair);
    note_lease(tally, "commands were left: ", lease.end(Deadline::in(drives.deadline_ns())));
    return;
  }
  const AlignedBuffer flags = allocate_aligned(LeasedPairs::flags_bytes(drives.pools(), drives.count()));
  const LeasedPairs leases(drives.pools(), drives.count(), flags.get());
  std::uint32_t drive = 0;
  const Status leased = leases.begin(deadline, drive);
  note_lease(tally, ("drive " + std::to_string(drive) + ": no queue pair: ").c_str(), leased);
  if (!leased.ok()) return;
  const ServingPairs pairs(leases, drives);
  work(pairs);
  const Status ended = leases.end(Deadline::in(drives.deadline_ns()), drive);
  note_lease(tally, ("drive " + std::to_string(drive) + ": commands were left: ").c_str(), ended);
}

// Where a byte of the address space is: the seed of its drive's content, and its offset there.
struct ContentPlace {
  std::uint64_t seed;
  std::uint64_t offset;

  static ContentPlace of(const PageCacheView& cache, const ArrayExtent& extent, std::uint64_t seed,
                         std::uint64_t at) {
    if (extent.members == 0) return {seed, at};
    const PageId page = extent.page(cache, at);
    return {seed + 2 * page.drive, page.number * cache.page_bytes + extent.place(cache, at)};
  }
};

// Which of several drives a failed page is of.
std::string drive_text(const BenchDrives& drives, const PageId& page) {
  return drives.count() == 1 ? "" : "drive " + std::to_string(page.drive) + ", ";
}

// The bits that an element at a byte offset has.
template <typename T>
bool element_is_right(T value, std::uint64_t seed, std::uint64_t offset) {
  const auto word_place = static_cast<std::uint32_t>(offset % kContentSectorBytes / 8);
  const std::uint64_t word = content_word(content_key(seed, offset / kContentSectorBytes), word_place);
  T expected;
  std::memcpy(&expected, reinterpret_cast<const std::byte*>(&word) + offset % 8, sizeof(T));
  return std::memcmp(&value, &expected, sizeof(T)) == 0;
}

template <typename T>
void gather(const ArrayJob& job, BenchCache& cache, BenchDrives& drives, std::uint32_t client,
            const std::atomic<bool>& stop, ClientTally& tally) {
  with_pairs(drives, tally, [&]<typename Queue>(Queue& queue) {
    ErrorRecord errors{};
    const ArrayExtent extent = drives.extent(cache.extent_bytes());
    const ArrayView view{cache.view(),         extent, &errors, cache.extent_bytes() / sizeof(T),
                         drives.deadline_ns(), 0,      0};
    Array<T, Queue> array(view, queue);
    std::vector<std::uint64_t> indices(kGatherElements);
    std::vector<T> values(kGatherElements);
    // Relaxed: `stop` only says to hurry.
    for (std::uint64_t asked = 0; !stop.load(std::memory_order_relaxed) && tally.errors < kMostErrors;) {
      for (std::uint64_t& index : indices) index = job.pattern.block(client, asked++);
      const Status status = array.gather(Lanes::warp(), 0, 1, indices.data(), values.data(), indices.size());
      if (!status.ok()) {
        tally.fail("gather: " + drive_text(drives, {0, 0, 0, errors.drive}) + status_text(status));
        continue;
      }
      tally.add_many(indices.size(), indices.size() * sizeof(T));
      if (!job.verify) continue;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::uint64_t offset = indices[i] * sizeof(T);
        const ContentPlace place = ContentPlace::of(cache.view(), extent, job.seed, offset);
        if (!element_is_right(values[i], place.seed, place.offset)) tally.mismatch(offset);
      }
    }
  });
}

using Gather = void (*)(const ArrayJob&, BenchCache&, BenchDrives&, std::uint32_t, const std::atomic<bool>&,
                        ClientTally&);

Gather gather_of(const std::string& element) {
  if (element == "int8") return &gather<std::int8_t>;
  if (element == "int16") return &gather<std::int16_t>;
  if (element == "int32") return &gather<std::int32_t>;
  if (element == "int64") return &gather<std::int64_t>;
  if (element == "uint8") return &gather<std::uint8_t>;
  if (element == "uint16") return &gather<std::uint16_t>;
  if (element == "uint32") return &gather<std::uint32_t>;
  if (element == "uint64") return &gather<std::uint64_t>;
  if (element == "float32") return &gather<float>;
  if (element == "float64") return &gather<double>;
  throw std::invalid_argument("no such element: " + element);
}

// Zeros, as an empty cache is; huge pages where there are any.
AlignedBuffer zeroed(std::uint64_t bytes) {
  AlignedBuffer memory = allocate_aligned(static_cast<std::size_t>(bytes));
  std::memset(memory.get(), 0, static_cast<std::size_t>(bytes));
  return memory;
}

PageCacheConfig config_of(std::uint64_t cache_bytes, std::uint32_t page_bytes, std::uint32_t block_bytes) {
  const PageCacheConfig config{static_cast<std::uint32_t>(cache_bytes / page_bytes), page_bytes, block_bytes};
  if (cache_bytes / page_bytes >= 1u << 30 || !valid(config)) {
    throw std::invalid_argument("no such page cache");
  }
  return config;
}

}  // namespace

BenchCache::BenchCache(std::uint64_t cache_bytes, std::uint32_t page_bytes, std::uint32_t block_bytes,
                       std::uint64_t extent_bytes)
    : extent_bytes_(extent_bytes),
      memory_(zeroed(page_cache_bytes(config_of(cache_bytes, page_bytes, block_bytes)))),
      view_(make_page_cache(memory_.get(), config_of(cache_bytes, page_bytes, block_bytes))) {}

CacheCounters BenchCache::counters() const {
  CacheCounters sum{};
  for (std::uint32_t i = 0; i < PageCacheView::kStripes; ++i) {
    const CacheCounters& stripe = view_.counters[i];
    sum.hits += stripe.hits;
    sum.misses += stripe.misses;
    sum.coalesced += stripe.coalesced;
    sum.evictions += stripe.evictions;
    sum.write_backs += stripe.write_backs;
    sum.failures += stripe.failures;
  }
  return sum;
}

BenchClients::Work cache_work(const CacheJob& job, BenchCache& cache, BenchDrives& drives) {
  return [job, &cache, &drives](std::uint32_t client, const std::atomic<bool>& stop, ClientTally& tally) {
    with_pairs(drives, tally, [&](auto& queue) {
      PageCache pages(cache.view(), cache.errors());
      const ArrayExtent extent = drives.extent(cache.extent_bytes());
      const std::uint32_t page_bytes = cache.view().page_bytes;
      std::vector<std::byte> copy(page_bytes);
      // Relaxed: `stop` only says to hurry.
      for (std::uint64_t count = 0; !stop.load(std::memory_order_relaxed) && tally.errors < kMostErrors;
           ++count) {
        const std::uint64_t number = job.pattern.block(client, count);
        const PageId page = extent.page(cache.view(), number * cache.view().page_bytes);
        const std::uint64_t start = now_ns();
        const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), page, queue, drives.deadline_ns());
        if (!guard.status().ok()) {
          tally.fail(drive_text(drives, page) + "page " + std::to_string(page.number) + ": " +
                     status_text(guard.status()));
          continue;
        }
        tally.add(page_bytes, now_ns() - start);
        if (!job.verify) {
          std::memcpy(copy.data(), guard.data(), page_bytes);
          continue;
        }
        const std::int64_t wrong = find_wrong({guard.data(), page_bytes}, job.seed + 2 * page.drive,
                                              page.number * page_bytes / kContentSectorBytes);
        if (wrong >= 0) tally.mismatch(number * page_bytes + static_cast<std::uint64_t>(wrong));
      }
    });
  };
}

BenchClients::Work array_work(const ArrayJob& job, BenchCache& cache, BenchDrives& drives) {
  const Gather work = gather_of(job.element);
  return [job, work, &cache, &drives](std::uint32_t client, const std::atomic<bool>& stop,
                                      ClientTally& tally) { work(job, cache, drives, client, stop, tally); };
}

void warm_cache(BenchCache& cache, BenchDrives& drives) {
  ClientTally tally;
  with_pairs(drives, tally, [&](auto& queue) {
    PageCache pages(cache.view(), cache.errors());
    const ArrayExtent extent = drives.extent(cache.extent_bytes());
    for (std::uint64_t number = 0; number < cache.pages() && tally.errors == 0; ++number) {
      const PageId page = extent.page(cache.view(), number * cache.view().page_bytes);
      const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), page, queue, drives.deadline_ns());
      if (!guard.status().ok()) {
        tally.fail(drive_text(drives, page) + "page " + std::to_string(page.number) + ": " +
                   status_text(guard.status()));
      }
    }
  });
  if (tally.errors != 0) throw StorageError("", "the cache cannot be warmed: " + tally.first_error);
}

}  // namespace bamquery
