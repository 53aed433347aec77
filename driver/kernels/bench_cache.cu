// Pages read through the page cache, every byte compared: what `bamquery bench cache` runs on a GPU.
//
// Kernels work for `run_ns`, as bench_block.cu's do. Page p of the pattern is page p of the namespace; the
// backing holds the content of `seed` from its first byte on. Arguments are pointers into GPU memory:
//   cache   PageCacheView (all zeros behind its pointers: an empty cache)
//   pool    QueuePoolView; leased pairs for bench_cache_lanes, at least one shared for bench_cache_warps
//   job     GpuCacheJob
//   tally   GpuCacheTally, zeros at first; one for all launches of a run
//   errors  ErrorRecord, zeros at first
#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/bench/content.hpp"
#include "driver/core/page_cache/page_guard.hpp"
#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

struct GpuCacheJob {
  AccessPattern pattern;      ///< Over the namespace's pages; a client is a warp or a lane, see the kernels.
  uint64_t seed;              ///< Of the content.
  uint64_t first_count;       ///< Accesses of each client in earlier launches, at most.
  uint64_t run_ns;            ///< How long to go on.
  uint64_t deadline_ns;       ///< For one access.
  uint64_t namespace_blocks;  ///< Its size in blocks of the cache's block_bytes.
  uint32_t nsid;
  uint32_t sweep_nap_ns;  ///< How long the sweeping warp rests when nothing has arrived.
  uint32_t verify;
  uint32_t reserved;
};

struct GpuCacheTally {
  unsigned long long pages;   ///< Read, by hit or miss: the cache's counters tell which.
  unsigned long long wrong;   ///< Vectors of 16 bytes that are not what they should be.
  unsigned long long failed;  ///< Accesses that gave no page; the first is in the error record.
};

namespace {

// A call of its own: zipf's logarithms would come into every kernel several times.
__device__ __noinline__ uint64_t next_block(const AccessPattern& pattern, uint64_t client, uint64_t count) {
  return pattern.block(client, count);
}

constexpr uint32_t kVectorBytes = 16;
constexpr uint32_t kSectorVectors = kContentSectorBytes / kVectorBytes;
constexpr uint32_t kPatience = 1u << 12;
static_assert(kSectorVectors == 32, "a warp compares a sector at once");

__device__ inline PageId page_id(const PageCacheView& cache, const GpuCacheJob& job, uint64_t number) {
  const uint64_t blocks = cache.page_bytes / cache.block_bytes;
  const uint64_t left = job.namespace_blocks - number * blocks;
  return {job.nsid, static_cast<uint32_t>(left < blocks ? left : blocks), number};
}

// Compares one page with the whole warp. Eight sectors are loaded before any is compared, and their keys are
// computed by a lane each: comparing must not be what is measured.
__device__ inline uint32_t compare(const GpuCacheJob& job, const byte* page, uint32_t bytes,
                                   uint64_t first_sector) {
  constexpr uint32_t kAtOnce = 8;
  const uint32_t lane = Lanes::lane();
  const uint32_t sectors = bytes / kContentSectorBytes;
  const auto* const vectors = reinterpret_cast<const ulonglong2*>(page);
  uint32_t wrong = 0;
  for (uint32_t first = 0; first < sectors; first += kAtOnce) {
    ulonglong2 found[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (first + i < sectors) found[i] = vectors[(first + i) * kSectorVectors + lane];
    }
    const uint64_t keys = content_key(job.seed, first_sector + first + lane % kAtOnce);
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint64_t key = __shfl_sync(~0u, keys, static_cast<int>(i));
      if (first + i >= sectors) continue;
      wrong += found[i].x != content_word(key, 2 * lane) || found[i].y != content_word(key, 2 * lane + 1);
    }
  }
  return job.verify != 0 ? wrong : 0;
}

__device__ inline void add(GpuCacheTally* tally, const GpuCacheTally& mine) {
  atomicAdd(&tally->pages, mine.pages);
  if (mine.wrong != 0) atomicAdd(&tally->wrong, mine.wrong);
  if (mine.failed != 0) atomicAdd(&tally->failed, mine.failed);
}

__device__ inline void fail(GpuCacheTally& mine, ErrorRecord* errors, const PageCacheView& cache,
                            const PageId& id, Status status) {
  ++mine.failed;
  const uint64_t blocks = cache.page_bytes / cache.block_bytes;
  record_error(errors, {Opcode::kRead, id.nsid, id.number * blocks, id.blocks}, status);
}

}  // namespace

/// Each warp reads a page at a time, its lanes together; client = warp of the grid. For pages that are there,
/// most of the time: misses go through shared pairs.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_warps(const PageCacheView* cache, const QueuePoolView* pool, const GpuCacheJob* shared_job,
                      GpuCacheTally* tally, ErrorRecord* errors) {
  constexpr uint64_t kLooksAtClock = 16;  // once in so many pages
  const PageCacheView view = *cache;
  const GpuCacheJob job = *shared_job;
  const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const auto queue = shared_pair(*pool, static_cast<uint32_t>(warp));
  PageCache pages(view, errors);
  GpuCacheTally mine{};
  const Deadline end = Deadline::in(job.run_ns);
  for (uint64_t count = job.first_count;; ++count) {
    if (count % kLooksAtClock == 0 && Lanes::warp().any(end.passed())) break;
    const PageId id = page_id(view, job, next_block(job.pattern, warp, count));
    const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), id, queue, job.deadline_ns);
    if (guard.status().ok()) {
      mine.pages += Lanes::lane() == 0;
      mine.wrong +=
          compare(job, guard.data(), guard.bytes(), id.number * (view.page_bytes / kContentSectorBytes));
    } else if (Lanes::lane() == 0) {
      fail(mine, errors, view, id, guard.status());
    }
  }
  add(tally, mine);
}

/// Each lane wants a page of its own, and a warp's misses go out together; client = lane of the grid's warps
/// but the last of each block, which sweeps completions. One leased pair a block, with at least a slot for
/// each lane if none is to wait. Dynamic shared memory: the pool's flags_bytes.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_lanes(const PageCacheView* cache, const QueuePoolView* pool, const GpuCacheJob* shared_job,
                      GpuCacheTally* tally, ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const PageCacheView view = *cache;
  const GpuCacheJob job = *shared_job;
  const uint32_t sweeper = blockDim.x / 32 - 1;
  if (threadIdx.x == 0) working = sweeper;
  BlockLease lease(*pool, flags);
  const Status leased = lease.begin(Deadline::in(job.deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(errors, {Opcode::kFlush, 0, 0, 0}, leased);
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(kPatience);
  if (threadIdx.x / 32 == sweeper) {
    // Relaxed: a hint; what is still pending is drained when the lease ends.
    const AtomicRef<uint32_t, Scope::kBlock> left(working);
    while (left.load(kRelaxed) != 0) {
      if (pair.sweep(Lanes::warp()) == 0 && job.sweep_nap_ns != 0) __nanosleep(job.sweep_nap_ns);
      __syncwarp();
    }
  } else {
    PageCache pages(view, errors);
    GpuCacheTally mine{};
    const Deadline end = Deadline::in(job.run_ns);
    const uint64_t client = static_cast<uint64_t>(blockIdx.x) * sweeper * 32 + threadIdx.x;
    for (uint64_t count = job.first_count; !Lanes::warp().any(end.passed()); ++count) {
      const PageId id = page_id(view, job, next_block(job.pattern, client, count));
      const ReadGuard guard = ReadGuard::many(pages, Lanes::warp(), id, pair, job.deadline_ns);
      const bool good = guard.status().ok();
      if (good) {
        ++mine.pages;
      } else {
        fail(mine, errors, view, id, guard.status());
      }
      const uint64_t sector = id.number * (view.page_bytes / kContentSectorBytes);
      for (uint32_t lanes = Lanes::warp().ballot(good); lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = lowest_bit(lanes);
        const uint64_t page = Lanes::warp().broadcast(reinterpret_cast<uint64_t>(guard.data()), lane);
        mine.wrong +=
            compare(job, reinterpret_cast<const byte*>(page), Lanes::warp().broadcast(guard.bytes(), lane),
                    Lanes::warp().broadcast(sector, lane));
      }
    }
    add(tally, mine);
    __syncwarp();
    if (Lanes::lane() == 0) AtomicRef<uint32_t, Scope::kBlock>(working).fetch_sub(1, kRelaxed);
  }
  lease.end(Deadline::in(job.deadline_ns));
}

/// Brings pages 0 to `count` - 1 of the namespace into the cache, a warp each, before the clock starts.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_fill(const PageCacheView* cache, const QueuePoolView* pool, const GpuCacheJob* shared_job,
                     uint64_t count, GpuCacheTally* tally, ErrorRecord* errors) {
  const PageCacheView view = *cache;
  const GpuCacheJob job = *shared_job;
  const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const uint64_t warps = static_cast<uint64_t>(gridDim.x) * blockDim.x / 32;
  const auto queue = shared_pair(*pool, static_cast<uint32_t>(warp));
  PageCache pages(view, errors);
  GpuCacheTally mine{};
  for (uint64_t number = warp; number < count; number += warps) {
    const PageId id = page_id(view, job, number);
    const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), id, queue, job.deadline_ns);
    if (Lanes::lane() != 0) continue;
    if (guard.status().ok()) {
      ++mine.pages;
    } else {
      fail(mine, errors, view, id, guard.status());
    }
  }
  add(tally, mine);
}

}  // namespace bamquery
