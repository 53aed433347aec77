// Reads and writes through queue pairs by many threads at once, every byte compared: what tests/gpu runs.
#include "driver/core/bench/access_pattern.hpp"
#include "driver/core/bench/content.hpp"
#include "driver/core/error_record.hpp"
#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

/// How threads behave; bits of RingJob::modes.
enum RingMode : uint32_t {
  kWrites = 1,      ///< Write blocks of their own and read them back, instead of reading any blocks.
  kDivergent = 2,   ///< Lanes sit out half of the rounds, each others.
  kEarlyExit = 4,   ///< Threads stop after some number of rounds, each another; some do none at all.
  kHoldsSlot = 8,   ///< One slot for all commands of a thread, instead of one slot a command.
  kSweepWarp = 16,  ///< The last warp of a block does nothing but sweep. Leased pairs only.
};

struct RingJob {
  uint64_t seed;         ///< Of the extent's content; writes put that of other seeds there.
  uint64_t blocks;       ///< Of the extent, which begins at LBA 0.
  uint64_t deadline_ns;  ///< Of a command, and of waits for slots and pairs.
  uint32_t nsid;
  uint32_t rounds;  ///< Of each thread: a read, or a write and a read.
  uint32_t lbas;    ///< Blocks of a command.
  uint32_t modes;
};

struct RingTally {
  unsigned long long commands;  ///< Issued, and ended as the error record or this tally says.
  unsigned long long wrong;     ///< Words of 8 bytes that are not what they should be.
  unsigned long long failed;    ///< Commands that did not succeed.
  unsigned long long slotless;  ///< Waits for a slot that ended without one.
  unsigned long long unleased;  ///< Blocks that got no queue pair, or could not drain theirs.
};

namespace {

constexpr uint32_t kPatience = 64;

__device__ inline bool has(const RingJob& job, RingMode mode) { return (job.modes & mode) != 0; }

template <Scope kScope>
class RingThread {
 public:
  __device__ RingThread(const QueuePair<kScope>& pair, const RingJob& job, ErrorRecord* errors)
      : pair_(pair), job_(job), errors_(errors) {}

  __device__ __noinline__ void run(uint64_t client, RingTally* tally) {
    const uint32_t sectors = job_.lbas * (pair_.view().block_bytes / kContentSectorBytes);
    const uint64_t sectors_of_lba = pair_.view().block_bytes / kContentSectorBytes;
    uint32_t rounds = job_.rounds;
    if (has(job_, kEarlyExit)) {
      rounds = static_cast<uint32_t>(RandomStream::of(~job_.seed, client, 0).below(job_.rounds + 1));
    }
    bool goes_on = true;
    for (uint32_t round = 0; round < rounds && goes_on; ++round) {
      RandomStream random = RandomStream::of(job_.seed, client, round);
      if (has(job_, kDivergent) && (random.bits() & 1) != 0) continue;
      if (!holds_ && !take_slot()) break;
      uint64_t lba = random.below(job_.blocks - job_.lbas + 1);
      uint64_t seed = job_.seed;
      if (has(job_, kWrites)) {
        lba = client * job_.lbas;  // The host makes the extent large enough.
        seed += 1 + round;
        fill(seed, lba * sectors_of_lba, sectors);
        goes_on = command(Opcode::kWrite, lba);
      }
      if (goes_on && holds_) {
        fill(~seed, lba * sectors_of_lba, sectors);  // So that bytes which did not arrive show.
        const uint64_t failed = mine_.failed;
        goes_on = command(Opcode::kRead, lba);
        if (mine_.failed == failed) compare(seed, lba * sectors_of_lba, sectors);
      }
      if (holds_ && !has(job_, kHoldsSlot)) give_slot();
    }
    if (holds_) give_slot();
    atomicAdd(&tally->commands, mine_.commands);
    atomicAdd(&tally->wrong, mine_.wrong);
    atomicAdd(&tally->failed, mine_.failed);
    atomicAdd(&tally->slotless, mine_.slotless);
  }

 private:
  // Calls, as copies of them in each kernel would have NVRTC take three times as long.
  __device__ __noinline__ bool take_slot() {
    const Status status = pair_.acquire_slot(Deadline::in(job_.deadline_ns), slot_);
    holds_ = status.ok();
    if (holds_) return true;
    ++mine_.slotless;
    record_error(errors_, {Opcode::kRead, job_.nsid, 0, 0}, status);
    return false;
  }

  __device__ void give_slot() {
    pair_.release_slot(slot_);
    holds_ = false;
  }

  // False if there is no use in going on.
  __device__ __noinline__ bool command(Opcode opcode, uint64_t lba) {
    const Request request{opcode, job_.nsid, lba, job_.lbas};
    pair_.issue(slot_, request);  // Where it is refused, the wait says so.
    const Status status = pair_.wait(slot_, Deadline::in(job_.deadline_ns));
    ++mine_.commands;
    if (status.ok()) return true;
    ++mine_.failed;
    record_error(errors_, request, status);
    if (loses_slot(status)) holds_ = false;
    return !(status == status::kQueueBroken);
  }

  __device__ uint64_t* words() const { return reinterpret_cast<uint64_t*>(pair_.landing(slot_)); }

  __device__ void fill(uint64_t seed, uint64_t first, uint32_t sectors) const {
    for (uint32_t sector = 0; sector < sectors; ++sector) {
      const uint64_t key = content_key(seed, first + sector);
      for (uint32_t word = 0; word < kContentSectorWords; ++word) {
        words()[sector * kContentSectorWords + word] = content_word(key, word);
      }
    }
  }

  __device__ void compare(uint64_t seed, uint64_t first, uint32_t sectors) {
    for (uint32_t sector = 0; sector < sectors; ++sector) {
      const uint64_t key = content_key(seed, first + sector);
      for (uint32_t word = 0; word < kContentSectorWords; ++word) {
        mine_.wrong += words()[sector * kContentSectorWords + word] == content_word(key, word) ? 0 : 1;
      }
    }
  }

  const QueuePair<kScope>& pair_;
  const RingJob& job_;
  ErrorRecord* errors_;
  RingTally mine_{};
  uint32_t slot_ = 0;
  bool holds_ = false;
};

__device__ inline uint64_t this_thread() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace

/// One leased pair a block. Dynamic shared memory: the pool's flags_bytes.
extern "C" __global__ void ring_leased(QueuePoolView pool, RingJob job, RingTally* tally,
                                       ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  __shared__ uint32_t working;
  const uint32_t workers = has(job, kSweepWarp) ? blockDim.x - 32 : blockDim.x;
  if (threadIdx.x == 0) working = workers;
  BlockLease lease(pool, flags);
  const Status leased = lease.begin(Deadline::in(job.deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) {
      atomicAdd(&tally->unleased, 1ull);
      record_error(errors, {Opcode::kRead, job.nsid, 0, 0}, leased);
    }
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(has(job, kSweepWarp) ? kPatience : 0);
  // Relaxed: a hint; what is still pending is drained when the lease ends.
  const AtomicRef<uint32_t, Scope::kBlock> left(working);
  if (threadIdx.x < workers) {
    RingThread<Scope::kBlock>(pair, job, errors).run(this_thread(), tally);
    left.fetch_sub(1, kRelaxed);
  } else {
    while (left.load(kRelaxed) != 0) {
      pair.sweep(Lanes::warp());
      __syncwarp();
    }
  }
  const Status ended = lease.end(Deadline::in(job.deadline_ns));
  if (threadIdx.x == 0 && !ended.ok()) {
    atomicAdd(&tally->unleased, 1ull);
    record_error(errors, {Opcode::kRead, job.nsid, 0, 0}, ended);
  }
}

/// Every warp's lanes on the pair of the warp's number; threads end when they have done their share.
extern "C" __global__ void ring_shared(QueuePoolView pool, RingJob job, RingTally* tally,
                                       ErrorRecord* errors) {
  const QueuePair<Scope::kDevice> pair = shared_pair(pool, static_cast<uint32_t>(this_thread() / 32));
  RingThread<Scope::kDevice>(pair, job, errors).run(this_thread(), tally);
}

/// Every lane of a warp on another pair.
extern "C" __global__ void ring_mixed(QueuePoolView pool, RingJob job, RingTally* tally,
                                      ErrorRecord* errors) {
  const QueuePair<Scope::kDevice> pair = shared_pair(pool, static_cast<uint32_t>(this_thread()));
  RingThread<Scope::kDevice>(pair, job, errors).run(this_thread(), tally);
}

/// Lasts `ns` nanoseconds.
extern "C" __global__ void ring_nap(uint64_t ns) {
  for (const Deadline end = Deadline::in(ns); !end.passed();) __nanosleep(1000);
}

}  // namespace bamquery
