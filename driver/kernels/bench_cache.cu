// Pages read through the page cache, every byte compared: what `bamquery bench cache` runs on a GPU.
//
// Kernels work for `run_ns`, as bench_block.cu's do. Page p of the pattern is page p of the array; its
// namespace holds the content of `seed` from its first byte on, or, where several are striped, number i that
// of `seed` + 2 i. Arguments are pointers into GPU memory:
//   view    SharedArrayView of one drive, or of any number for the kernels that end in `drives`; with pairs
//   to
//           lease for those of lanes, at least one shared pair of each drive for the others
//   job     GpuCacheJob
//   tally   GpuCacheTally, zeros at first; one for all launches of a run
//   errors  ErrorRecord, zeros at first
#include "driver/core/array/shared_array.hpp"
#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/bench/content.hpp"
#include "driver/core/page_cache/page_guard.hpp"

namespace bamquery {

struct GpuCacheJob {
  AccessPattern pattern;  ///< Over the array's pages; a client is a warp or a lane, see the kernels.
  uint64_t seed;          ///< Of the content.
  uint64_t first_count;   ///< Accesses of each client in earlier launches, at most.
  uint64_t run_ns;        ///< How long to go on.
  uint64_t deadline_ns;   ///< For one access.
  uint32_t sweep_nap_ns;  ///< How long the sweeping warp rests when nothing has arrived.
  uint32_t verify;
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

// Compares one page with the whole warp. Eight sectors are loaded before any is compared, and their keys are
// computed by a lane each: comparing must not be what is measured.
__device__ inline uint32_t compare(const GpuCacheJob& job, uint64_t seed, const byte* page, uint32_t bytes,
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
    const uint64_t keys = content_key(seed, first_sector + first + lane % kAtOnce);
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
  record_error(errors, {Opcode::kRead, id.nsid, id.number * blocks, id.blocks, id.drive}, status);
}

// With pairs of one drive there is one namespace: nothing of stripes is compiled in.
template <typename Queue>
__device__ inline PageId page_id(const PageCacheView& cache, const ArrayExtent& extent, uint64_t number) {
  if constexpr (kOfDrives<Queue>) {
    return extent.page(cache, number * cache.page_bytes);
  } else {
    const uint64_t blocks = cache.page_bytes / cache.block_bytes;
    const uint64_t left = extent.namespace_blocks - number * blocks;
    return {extent.nsid, static_cast<uint32_t>(left < blocks ? left : blocks), number};
  }
}

// Of a drive's namespace; of several, of the drive that the lane `from` asks.
template <typename Queue>
__device__ inline uint64_t seed_of(const GpuCacheJob& job, uint32_t drive, uint32_t from) {
  if constexpr (!kOfDrives<Queue>) return job.seed;
  return job.seed + 2 * Lanes::warp().broadcast(drive, from);
}

// Each warp reads a page at a time, its lanes together.
template <typename Queue>
__device__ inline void read_by_warps(const PageCacheView& cache, const ArrayExtent& extent,
                                     const GpuCacheJob& job, uint64_t warp, Queue& queue,
                                     GpuCacheTally* tally, ErrorRecord* errors) {
  constexpr uint64_t kLooksAtClock = 16;  // once in so many pages
  PageCache pages(cache, errors);
  GpuCacheTally mine{};
  const Deadline end = Deadline::in(job.run_ns);
  for (uint64_t count = job.first_count;; ++count) {
    if (count % kLooksAtClock == 0 && Lanes::warp().any(end.passed())) break;
    const PageId id = page_id<Queue>(cache, extent, next_block(job.pattern, warp, count));
    const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), id, queue, job.deadline_ns);
    if (guard.status().ok()) {
      mine.pages += Lanes::lane() == 0;
      mine.wrong += compare(job, seed_of<Queue>(job, id.drive, 0), guard.data(), guard.bytes(),
                            id.number * (cache.page_bytes / kContentSectorBytes));
    } else if (Lanes::lane() == 0) {
      fail(mine, errors, cache, id, guard.status());
    }
  }
  add(tally, mine);
}

// Each lane wants a page of its own, and a warp's misses go out together; the block's last warp sweeps
// completions until the others, which `working` counts, have done.
template <typename Queue>
__device__ inline void read_by_lanes_or_sweep(const PageCacheView& cache, const ArrayExtent& extent,
                                              const GpuCacheJob& job, Queue& queue, uint32_t& working,
                                              GpuCacheTally* tally, ErrorRecord* errors) {
  const uint32_t sweeper = blockDim.x / 32 - 1;
  if (threadIdx.x / 32 == sweeper) {
    // Relaxed: a hint; what is still pending is drained when the lease ends.
    const AtomicRef<uint32_t, Scope::kBlock> left(working);
    while (left.load(kRelaxed) != 0) {
      if (queue.sweep(Lanes::warp()) == 0 && job.sweep_nap_ns != 0) __nanosleep(job.sweep_nap_ns);
      __syncwarp();
    }
    return;
  }
  PageCache pages(cache, errors);
  GpuCacheTally mine{};
  const Deadline end = Deadline::in(job.run_ns);
  const uint64_t client = static_cast<uint64_t>(blockIdx.x) * sweeper * 32 + threadIdx.x;
  for (uint64_t count = job.first_count; !Lanes::warp().any(end.passed()); ++count) {
    const PageId id = page_id<Queue>(cache, extent, next_block(job.pattern, client, count));
    const ReadGuard guard = ReadGuard::many(pages, Lanes::warp(), id, queue, job.deadline_ns);
    const bool good = guard.status().ok();
    if (good) {
      ++mine.pages;
    } else {
      fail(mine, errors, cache, id, guard.status());
    }
    const uint64_t sector = id.number * (cache.page_bytes / kContentSectorBytes);
    for (uint32_t lanes = Lanes::warp().ballot(good); lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = lowest_bit(lanes);
      const uint64_t page = Lanes::warp().broadcast(reinterpret_cast<uint64_t>(guard.data()), lane);
      mine.wrong +=
          compare(job, seed_of<Queue>(job, id.drive, lane), reinterpret_cast<const byte*>(page),
                  Lanes::warp().broadcast(guard.bytes(), lane), Lanes::warp().broadcast(sector, lane));
    }
  }
  add(tally, mine);
  __syncwarp();
  if (Lanes::lane() == 0) AtomicRef<uint32_t, Scope::kBlock>(working).fetch_sub(1, kRelaxed);
}

__device__ inline uint64_t this_warp() {
  return (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
}

}  // namespace

/// Each warp reads a page at a time; client = warp of the grid. For pages that are there, most of the time:
/// misses go through shared pairs.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_warps(const SharedArrayView* shared_view, const GpuCacheJob* shared_job, GpuCacheTally* tally,
                      ErrorRecord* errors) {
  const PageCacheView cache = shared_view->array.cache;
  const ArrayExtent extent = shared_view->array.extent;
  const GpuCacheJob job = *shared_job;
  const uint64_t warp = this_warp();
  const auto queue = shared_pair(*shared_view->pools, static_cast<uint32_t>(warp));
  read_by_warps(cache, extent, job, warp, queue, tally, errors);
}

/// The same where there are several drives.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_warps_drives(const SharedArrayView* shared_view, const GpuCacheJob* shared_job,
                             GpuCacheTally* tally, ErrorRecord* errors) {
  const PageCacheView cache = shared_view->array.cache;
  const ArrayExtent extent = shared_view->array.extent;
  const GpuCacheJob job = *shared_job;
  const uint64_t warp = this_warp();
  const SharedPairs queue(shared_view->pools, shared_view->drives, static_cast<uint32_t>(warp));
  read_by_warps(cache, extent, job, warp, queue, tally, errors);
}

/// Each lane wants a page of its own; client = lane of the grid's warps but the last of each block, which
/// sweeps completions. One leased pair a block, with at least a slot for each lane if none is to wait.
/// Dynamic shared memory: the pool's flags_bytes.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_lanes(const SharedArrayView* shared_view, const GpuCacheJob* shared_job, GpuCacheTally* tally,
                      ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const PageCacheView cache = shared_view->array.cache;
  const ArrayExtent extent = shared_view->array.extent;
  const GpuCacheJob job = *shared_job;
  if (threadIdx.x == 0) working = blockDim.x / 32 - 1;
  BlockLease lease(*shared_view->pools, flags);
  const Status leased = lease.begin(Deadline::in(job.deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(errors, {Opcode::kFlush, 0, 0, 0}, leased);
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(kPatience);
  read_by_lanes_or_sweep(cache, extent, job, pair, working, tally, errors);
  lease.end(Deadline::in(job.deadline_ns));
}

/// The same with a pair of each drive. Dynamic shared memory: the largest flags_bytes for each.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_lanes_drives(const SharedArrayView* shared_view, const GpuCacheJob* shared_job,
                             GpuCacheTally* tally, ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const PageCacheView cache = shared_view->array.cache;
  const ArrayExtent extent = shared_view->array.extent;
  const GpuCacheJob job = *shared_job;
  if (threadIdx.x == 0) working = blockDim.x / 32 - 1;
  const LeasedPairs pairs(shared_view->pools, shared_view->drives, flags, kPatience);
  uint32_t drive = 0;
  const Status leased = pairs.begin(Deadline::in(job.deadline_ns), drive);
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(errors, {Opcode::kFlush, 0, 0, 0, drive}, leased);
    return;
  }
  read_by_lanes_or_sweep(cache, extent, job, pairs, working, tally, errors);
  pairs.end(Deadline::in(job.deadline_ns), drive);
}

/// Brings pages 0 to `count` - 1 of the array into the cache, a warp each, before the clock starts.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_cache_fill(const SharedArrayView* shared_view, const GpuCacheJob* shared_job, uint64_t count,
                     GpuCacheTally* tally, ErrorRecord* errors) {
  const PageCacheView cache = shared_view->array.cache;
  const ArrayExtent extent = shared_view->array.extent;
  const GpuCacheJob job = *shared_job;
  const uint64_t warps = static_cast<uint64_t>(gridDim.x) * blockDim.x / 32;
  const SharedPairs queue(shared_view->pools, shared_view->drives, static_cast<uint32_t>(this_warp()));
  PageCache pages(cache, errors);
  GpuCacheTally mine{};
  for (uint64_t number = this_warp(); number < count; number += warps) {
    const PageId id = extent.page(cache, number * cache.page_bytes);
    const ReadGuard guard = ReadGuard::one(pages, Lanes::warp(), id, queue, job.deadline_ns);
    if (Lanes::lane() != 0) continue;
    if (guard.status().ok()) {
      ++mine.pages;
    } else {
      fail(mine, errors, cache, id, guard.status());
    }
  }
  add(tally, mine);
}

}  // namespace bamquery
