// Blocks between a backing and GPU memory, every byte compared: what `bamquery bench block` runs on a GPU.
//
// Each kernel works for `run_ns` rather than through a fixed number of blocks: with a fixed share for each
// thread block the slowest controller thread would set the time of all.
#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/bench/content.hpp"
#include "driver/core/bench/gpu_job.hpp"
#include "driver/core/error_record.hpp"
#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kVectorBytes = 16;
constexpr uint32_t kNobody = ~0u;

// The sweeping warp is there for as long as others wait; its naps are counted in their looks.
constexpr uint32_t kPatience = 1u << 16;

__device__ inline uint4 vector_of(uint64_t low, uint64_t high) {
  return make_uint4(static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
                    static_cast<uint32_t>(high >> 32));
}

__device__ inline bool same(uint4 left, uint4 right) {
  return left.x == right.x && left.y == right.y && left.z == right.z && left.w == right.w;
}

// What this lane moves of each sector: 32 lanes times 16 bytes are one.
struct SectorLane {
  uint64_t low, high;  // what its words add to the sector's key

  __device__ static SectorLane mine() {
    return {content_word(0, Lanes::lane() * 2), content_word(0, Lanes::lane() * 2 + 1)};
  }
  __device__ uint4 content(uint64_t seed, uint64_t sector) const {
    const uint64_t key = content_key(seed, sector);
    return vector_of(key + low, key + high);
  }
  // Whether what was found is right; where blocks may be rewritten meanwhile, it is of either content.
  __device__ bool right(const GpuBlockJob& job, uint4 found, uint64_t sector) const {
    return same(found, content(job.seed, sector)) ||
           (job.write_share > 0 && same(found, content(job.seed + 1, sector)));
  }
};
static_assert(kContentSectorBytes == 32 * kVectorBytes);

// Compares the blocks that landed, and copies them on into this GPU's memory. Lanes whose command was a
// successful read say so; all lanes of the warp call.
__device__ inline uint32_t consume(const GpuBlockJob& job, bool reads, const byte* landing, uint64_t block,
                                   uint4* target) {
  constexpr uint32_t kSlots = 8;  // loads across PCIe in flight for each lane
  const SectorLane mine = SectorLane::mine();
  const uint32_t sectors = job.block_bytes / kContentSectorBytes;
  uint32_t wrong = 0;
  for (uint32_t left = __ballot_sync(~0u, reads); left != 0;) {
    uint32_t from[kSlots];
#pragma unroll
    for (uint32_t slot = 0; slot < kSlots; ++slot, left &= left - 1) {
      from[slot] = left != 0 ? __ffs(static_cast<int>(left)) - 1 : kNobody;
    }
    for (uint32_t sector = 0; sector < sectors; ++sector) {
      const uint32_t at = sector * 32 + Lanes::lane();
      uint4 found[kSlots];
#pragma unroll
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        const uint64_t base = __shfl_sync(~0u, reinterpret_cast<uint64_t>(landing), from[slot] % 32);
        if (from[slot] != kNobody) found[slot] = reinterpret_cast<const uint4*>(base)[at];
      }
#pragma unroll
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        const uint64_t first = __shfl_sync(~0u, block, from[slot] % 32) * sectors;
        if (from[slot] == kNobody) continue;
        if (job.verify != 0) wrong += mine.right(job, found[slot], first + sector) ? 0 : 1;
        target[static_cast<uint64_t>(from[slot]) * sectors * 32 + at] = found[slot];
      }
    }
  }
  return wrong;
}

// Fills the landing buffers of the lanes that write.
__device__ inline void produce(const GpuBlockJob& job, bool writes, byte* landing, uint64_t block) {
  const SectorLane mine = SectorLane::mine();
  const uint32_t sectors = job.block_bytes / kContentSectorBytes;
  for (uint32_t left = __ballot_sync(~0u, writes); left != 0; left &= left - 1) {
    const uint32_t from = __ffs(static_cast<int>(left)) - 1;
    const auto to = reinterpret_cast<uint4*>(__shfl_sync(~0u, reinterpret_cast<uint64_t>(landing), from));
    const uint64_t first = __shfl_sync(~0u, block, from) * sectors;
    for (uint32_t sector = 0; sector < sectors; ++sector) {
      to[sector * 32 + Lanes::lane()] = mine.content(job.seed + 1, first + sector);
    }
  }
  __syncwarp();
}

// Waits until as many of the warp's commands have ended as are worth going on for, or one is overdue; true
// for lanes whose command has ended, with its status. All lanes of the warp call.
__device__ inline bool await_batch(const GpuBlockJob& job, const QueuePair<Scope::kBlock>& pair,
                                   uint32_t slot, bool pending, Deadline due, Status& status) {
  const int wanted = min(__popc(__ballot_sync(~0u, pending)), static_cast<int>(job.batch));
  for (Backoff wait;; wait.pause()) {
    const bool ended = pending && pair.try_wait(slot, status);
    if (__popc(__ballot_sync(~0u, ended)) >= wanted) return ended;
    const bool overdue = pending && !ended && (due.passed() || pair.broken());
    if (!__any_sync(~0u, overdue)) continue;
    if (overdue) status = pair.wait(slot, due);
    return ended || overdue;
  }
}

}  // namespace

/// One queue pair a thread block: its last warp sweeps completions, job.lanes lanes of all others keep a
/// command in flight. `target` has block_bytes for each thread. `written` has a bit for each block of the
/// extent, or is null. Dynamic shared memory: the pool's flags_bytes.
extern "C" __global__ void __launch_bounds__(256)
    bench_block_rings(const QueuePoolView pool, const GpuBlockJob job, uint4* target, uint32_t* written,
                      GpuBlockTally* tally, ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t sweeper = blockDim.x / 32 - 1;
  if (threadIdx.x == 0) working = sweeper;
  BlockLease lease(pool, flags);
  const Status leased = lease.begin(Deadline::in(job.deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(errors, {Opcode::kFlush, 0, 0, 0}, leased);
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(kPatience);
  if (warp == sweeper) {
    // Relaxed: a hint; what is still pending is drained when the lease ends.
    const AtomicRef<uint32_t, Scope::kBlock> left(working);
    while (left.load(kRelaxed) != 0) {
      if (pair.sweep(Lanes::warp()) == 0 && job.sweep_nap_ns != 0) __nanosleep(job.sweep_nap_ns);
      __syncwarp();
    }
  } else {
    GpuBlockTally mine{};
    uint32_t slot = 0;
    // The pair has a slot for each; only those in quarantine since an earlier lease are missing.
    bool holds = Lanes::lane() < job.lanes && pair.acquire_slot(Deadline{0}, slot).ok();
    byte* const landing = holds ? pair.landing(slot) : nullptr;
    uint4* const landed = target + static_cast<uint64_t>(blockIdx.x * blockDim.x + warp * 32) *
                                       (job.block_bytes / kVectorBytes);
    const Deadline end = Deadline::in(job.run_ns);
    const uint32_t lbas = job.block_bytes / job.lba_bytes;
    const uint64_t client = (static_cast<uint64_t>(blockIdx.x) * sweeper + warp) * job.lanes + Lanes::lane();
    uint64_t count = job.first_count;
    uint64_t block = 0;
    bool writes = false;
    bool pending = false;
    Request request{};
    Deadline due{};
    while (true) {
      const bool starts = holds && !pending && !end.passed();
      if (starts) {
        block = job.pattern.block(client, count);
        writes = job.write_share > 0 && RandomStream::of(~job.seed, client, count).unit() < job.write_share;
        ++count;
      }
      if (job.write_share > 0) produce(job, starts && writes, landing, block);
      if (starts) {
        request = {writes ? Opcode::kWrite : Opcode::kRead, job.nsid, block * lbas, lbas};
        due = Deadline::in(job.deadline_ns);
        pending = true;
      }
      pair.issue(Lanes::warp(), starts, slot, request);  // Where it is refused, the wait says so.
      if (!__any_sync(~0u, pending)) break;
      Status status = status::kSuccess;
      const bool ended = await_batch(job, pair, slot, pending, due, status);
      if (ended) {
        pending = false;
        if (status.ok()) {
          ++mine.operations;
          if (writes && written != nullptr) atomicOr(&written[block / 32], 1u << block % 32);
        } else {
          ++mine.failed;
          record_error(errors, request, status);
          holds = !loses_slot(status);
        }
      }
      __syncwarp();  // What each lane acquired with its command's word is to be seen by all.
      mine.wrong += consume(job, ended && status.ok() && !writes, landing, block, landed);
      __syncwarp();  // All lanes have read the landing buffers that are written to next.
    }
    if (holds) pair.release_slot(slot);
    atomicAdd(&tally->operations, mine.operations);
    atomicAdd(&tally->wrong, mine.wrong);
    atomicAdd(&tally->failed, mine.failed);
    atomicMax(&tally->counts, static_cast<unsigned long long>(count));
    __syncwarp();
    if (Lanes::lane() == 0) AtomicRef<uint32_t, Scope::kBlock>(working).fetch_sub(1, kRelaxed);
  }
  lease.end(Deadline::in(job.deadline_ns));
}

/// Blocks loaded from pinned host memory by the threads themselves: what the rings are held against. Each
/// lane of a warp keeps eight loads in flight.
extern "C" __global__ void __launch_bounds__(256, 3)
    bench_block_zero_copy(const byte* backing, const GpuBlockJob job, uint4* target, GpuBlockTally* tally) {
  const uint32_t lane = Lanes::lane();
  const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  uint4* const landed = target + warp * 32 * (job.block_bytes / kVectorBytes);
  GpuBlockTally mine{};
  const Deadline end = Deadline::in(job.run_ns);
  for (uint64_t count = job.first_count; __any_sync(~0u, !end.passed()); ++count) {
    const uint64_t block = job.pattern.block(warp * 32 + lane, count);
    mine.wrong += consume(job, true, backing + block * job.block_bytes, block, landed);
    ++mine.operations;
    ++mine.counts;
  }
  atomicAdd(&tally->operations, mine.operations);
  atomicAdd(&tally->wrong, mine.wrong);
  atomicMax(&tally->counts, job.first_count + mine.counts);
}

/// Counts the vectors of `sectors` sectors at `bytes` that are not the content from `first_sector` on. Blocks
/// whose bit is set in `written` (none if null) are to have the content of seed + 1.
extern "C" __global__ void bench_block_check(const uint4* bytes, uint64_t sectors, uint64_t first_sector,
                                             uint64_t seed, const uint32_t* written,
                                             uint32_t sectors_per_block, GpuBlockTally* tally) {
  const SectorLane mine = SectorLane::mine();
  const uint64_t warps = static_cast<uint64_t>(gridDim.x) * blockDim.x / 32;
  const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  unsigned long long wrong = 0;
#pragma unroll 4
  for (uint64_t sector = warp; sector < sectors; sector += warps) {
    const uint64_t block = (first_sector + sector) / sectors_per_block;
    const bool rewritten = written != nullptr && (written[block / 32] >> block % 32 & 1) != 0;
    const uint4 expected = mine.content(seed + (rewritten ? 1 : 0), first_sector + sector);
    wrong += same(bytes[sector * 32 + Lanes::lane()], expected) ? 0 : 1;
  }
  if (wrong != 0) atomicAdd(&tally->wrong, wrong);
}

}  // namespace bamquery
