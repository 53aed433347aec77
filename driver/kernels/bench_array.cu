// Elements read through Array<T>, every one compared: what `bamquery bench array` runs on a GPU.
//
// Kernels work for `run_ns`, as bench_block.cu's do. The array starts at byte 0 of its namespace, which holds
// the content of `seed`; where several are striped, number i that of `seed` + 2 i. Element types do not
// matter, only their size. Arguments are pointers into GPU memory:
//   view    SharedArrayView; with leased pairs for bench_array_leased, of one drive, and
//   bench_array_leased_drives,
//           of any number; shared ones for bench_array_shared
//   job     GpuArrayJob
//   tally   GpuArrayTally, zeros at first; one for all launches of a run
// Failures go to the view's error record.
#include "driver/core/array/shared_array.hpp"
#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/bench/content.hpp"

namespace bamquery {

struct GpuArrayJob {
  AccessPattern
      pattern;           ///< Over elements, a client is a lane; over runs of 32 elements, a warp, for a scan.
  uint64_t seed;         ///< Of the content.
  uint64_t first_count;  ///< Accesses of each client in earlier launches, at most.
  uint64_t run_ns;       ///< How long to go on.
  uint64_t deadline_ns;  ///< For the lease; an access has the view's timeout.
  uint32_t scans;        ///< 1: a warp reads 32 elements in a row. 0: each lane its own.
  uint32_t sweep_nap_ns;  ///< How long the sweeping warp rests when nothing has arrived.
  uint32_t element_bytes;
  uint32_t reserved;
};

struct GpuArrayTally {
  unsigned long long elements;
  unsigned long long wrong;
  unsigned long long failed;
};

namespace {

// A call of its own: zipf's logarithms would come into every kernel several times.
__device__ __noinline__ uint64_t next_block(const AccessPattern& pattern, uint64_t client, uint64_t count) {
  return pattern.block(client, count);
}

constexpr uint32_t kPatience = 1u << 12;

// The element's bytes of the content.
template <typename T, typename Queue>
__device__ inline T expected(const ArrayView& view, uint64_t seed, uint64_t index) {
  uint64_t at = index * sizeof(T);
  if constexpr (kOfDrives<Queue>) {  // Else there is one namespace: nothing of stripes is compiled in.
    const PageId page = view.extent.page(view.cache, at);
    seed += 2 * page.drive;
    at = page.number * view.cache.page_bytes + view.extent.place(view.cache, at);
  }
  const uint64_t word = content_word(content_key(seed, at / kContentSectorBytes),
                                     static_cast<uint32_t>(at % kContentSectorBytes / 8));
  return static_cast<T>(word >> (at % 8 * 8));
}

// Reads with the whole warp until the time is over. `lane` counts the grid's lanes that read.
template <typename T, typename Queue>
__device__ inline void read_elements(const ArrayView& view, const GpuArrayJob& job, uint64_t lane,
                                     Queue& queue, GpuArrayTally* tally) {
  Array<T, Queue> array(view, queue);
  GpuArrayTally mine{};
  const Deadline end = Deadline::in(job.run_ns);
  const uint64_t client = job.scans != 0 ? lane / 32 : lane;
  for (uint64_t count = job.first_count; !Lanes::warp().any(end.passed()); ++count) {
    uint64_t index = next_block(job.pattern, client, count);
    if (job.scans != 0) index = index * 32 + Lanes::lane();
    T value;
    const Status status = array.read(Lanes::warp(), true, index, value);
    mine.elements += status.ok();
    mine.failed += !status.ok();
    mine.wrong += status.ok() && value != expected<T, Queue>(view, job.seed, index);
  }
  atomicAdd(&tally->elements, mine.elements);
  if (mine.wrong != 0) atomicAdd(&tally->wrong, mine.wrong);
  if (mine.failed != 0) atomicAdd(&tally->failed, mine.failed);
}

template <typename Queue>
__device__ inline void read_any(const ArrayView& view, const GpuArrayJob& job, uint64_t lane, Queue& queue,
                                GpuArrayTally* tally) {
  if (job.element_bytes == 1) read_elements<uint8_t>(view, job, lane, queue, tally);
  if (job.element_bytes == 2) read_elements<uint16_t>(view, job, lane, queue, tally);
  if (job.element_bytes == 4) read_elements<uint32_t>(view, job, lane, queue, tally);
  if (job.element_bytes == 8) read_elements<uint64_t>(view, job, lane, queue, tally);
}

// What the warps of a block do with its leased pairs: the last sweeps completions until the others, which
// `working` counts, have done.
template <typename Queue>
__device__ inline void read_or_sweep(const ArrayView& view, const GpuArrayJob& job, Queue& queue,
                                     uint32_t& working, GpuArrayTally* tally) {
  const uint32_t sweeper = blockDim.x / 32 - 1;
  if (threadIdx.x / 32 == sweeper) {
    // Relaxed: a hint; what is still pending is drained when the lease ends.
    const AtomicRef<uint32_t, Scope::kBlock> left(working);
    while (left.load(kRelaxed) != 0) {
      if (queue.sweep(Lanes::warp()) == 0 && job.sweep_nap_ns != 0) __nanosleep(job.sweep_nap_ns);
      __syncwarp();
    }
  } else {
    const uint64_t lane = static_cast<uint64_t>(blockIdx.x) * sweeper * 32 + threadIdx.x;
    read_any(view, job, lane, queue, tally);
    __syncwarp();
    if (Lanes::lane() == 0) AtomicRef<uint32_t, Scope::kBlock>(working).fetch_sub(1, kRelaxed);
  }
}

}  // namespace

/// Through shared pairs, which any thread may use.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_array_shared(const SharedArrayView* shared_view, const GpuArrayJob* shared_job,
                       GpuArrayTally* tally) {
  const SharedArrayView view = *shared_view;
  const GpuArrayJob job = *shared_job;
  const uint64_t lane = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const SharedPairs queue(view.pools, view.drives, static_cast<uint32_t>(lane / 32));
  read_any(view.array, job, lane, queue, tally);
}

/// Through a leased pair for each block, whose last warp sweeps completions. Dynamic shared memory: the
/// pool's flags_bytes.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_array_leased(const SharedArrayView* shared_view, const GpuArrayJob* shared_job,
                       GpuArrayTally* tally) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const ArrayView view = shared_view->array;
  const GpuArrayJob job = *shared_job;
  if (threadIdx.x == 0) working = blockDim.x / 32 - 1;
  BlockLease lease(*shared_view->pools, flags);
  const Status leased = lease.begin(Deadline::in(job.deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(view.errors, {Opcode::kFlush, 0, 0, 0}, leased);
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(kPatience);
  read_or_sweep(view, job, pair, working, tally);
  lease.end(Deadline::in(job.deadline_ns));
}

/// The same with a pair of each drive. Dynamic shared memory: the largest flags_bytes for each.
extern "C" __global__ void __launch_bounds__(256, 2)
    bench_array_leased_drives(const SharedArrayView* shared_view, const GpuArrayJob* shared_job,
                              GpuArrayTally* tally) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const SharedArrayView view = *shared_view;
  const GpuArrayJob job = *shared_job;
  if (threadIdx.x == 0) working = blockDim.x / 32 - 1;
  const LeasedPairs pairs(view.pools, view.drives, flags, kPatience);
  uint32_t drive = 0;
  const Status leased = pairs.begin(Deadline::in(job.deadline_ns), drive);
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(view.array.errors, {Opcode::kFlush, 0, 0, 0, drive}, leased);
    return;
  }
  read_or_sweep(view.array, job, pairs, working, tally);
  pairs.end(Deadline::in(job.deadline_ns), drive);
}

}  // namespace bamquery
