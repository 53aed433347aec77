// What kernels that fetch are told, and how the warps of a thread block share its queue pair.
#pragma once

#include "driver/core/error_record.hpp"
#include "driver/core/queues/queue_pool.hpp"
#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/strings/scan_strings.hpp"

namespace bamquery {

/// One buffer of one column, of which the blocks that hold a selection's rows are wanted.
struct ScanFetch {
  ScanItems items;
  const uint32_t* index;     ///< Where each row's value goes in `target`; null: to its own number.
  const uint32_t* starts;    ///< First item of each block, and the number of items behind the last.
  const uint32_t* ordinals;  ///< The block of each item.
  const uint32_t* blocks;    ///< How many blocks.
  byte* target;              ///< A value each; bits become bytes.
  uint32_t* next;            ///< First block that no warp has taken.
  ScanTally* tally;
};
static_assert(sizeof(ScanFetch) == 112);

/// Blocks of one column that are wanted as they are.
struct ScanListed {
  const ScanBlock* list;
  byte* target;    ///< A multiple of 16; the blocks come one after the other.
  uint32_t* next;  ///< First block that no warp has taken.
  ScanTally* tally;
  uint32_t blocks;
  uint32_t pad;
};
static_assert(sizeof(ScanListed) == 40);

/// Shared by all warps that fetch for one chunk.
struct ScanControl {
  uint32_t failed;  ///< 1: a command failed, so that going on makes no sense.
  uint32_t pad;
};

// The sweeping warp is there for as long as others wait; its naps are counted in their looks.
inline constexpr uint32_t kScanPatience = 1u << 16;

#if defined(__CUDACC__) || defined(BAMQUERY_EMULATED)

/// A warp with a command slot for some of its lanes, in a thread block that has leased a queue pair. All
/// lanes make each call.
class ScanWarp {
 public:
  /// `lanes`: of each warp that take a slot.
  __device__ ScanWarp(const QueuePair<Scope::kBlock>& pair, uint32_t lanes, uint64_t deadline_ns,
                      ErrorRecord* errors, ScanControl* control)
      : pair_(pair), deadline_ns_(deadline_ns), errors_(errors), control_(control) {
    // The pair has a slot for each; only those in quarantine since an earlier lease are missing.
    holds_ = Lanes::lane() < lanes && pair_.acquire_slot(Deadline{0}, slot_).ok();
    holders_ = Lanes::ballot(holds_);
    rank_ = count_before(holders_, Lanes::lane());
    const uint64_t mine = holds_ ? reinterpret_cast<uint64_t>(pair_.landing(slot_)) : 0;
    // The lane that holds the slot of rank r, found by counting: holders may have gaps.
    uint32_t from = 0;
    for (uint32_t rest = holders_, r = 0; rest != 0; rest &= rest - 1, ++r) {
      if (r == Lanes::lane()) from = lowest_bit(rest);
    }
    landing_ = Lanes::broadcast(mine, from);
    from_ = from;
    began_ns_ = now_ns();
  }

  /// Commands that the warp can have in flight.
  __device__ uint32_t width() const { return bit_count(holders_); }
  /// Which of them is this lane's; at least width() where it has none.
  __device__ uint32_t rank() const { return holds_ ? rank_ : 32; }
  /// Which lane's command has that rank.
  __device__ uint32_t lane_of(uint32_t rank) const { return Lanes::broadcast(from_, rank); }
  /// Where what the command of rank `rank` reads lands.
  __device__ const byte* landing(uint32_t rank) const {
    return reinterpret_cast<const byte*>(Lanes::broadcast(landing_, rank));
  }

  /// Takes `width()` numbers from a counter: returns the first.
  __device__ uint32_t take(uint32_t* next) const {
    uint32_t first = 0;
    if (Lanes::leads()) first = AtomicRef<uint32_t, Scope::kDevice>(*next).fetch_add(width(), kRelaxed);
    return Lanes::broadcast(first);
  }

  /// Reads, if `wanted`, and waits for all of the warp's reads; false if one failed. `blocks` is what the
  /// read counts for.
  __device__ bool read(bool wanted, uint32_t nsid, uint64_t lba, uint32_t lbas, uint32_t blocks) {
    const Request request{Opcode::kRead, nsid, lba, lbas};
    const uint64_t issued = now_ns();
    pair_.issue(Lanes::warp(), wanted, slot_, request);  // Where it is refused, the wait says so.
    const Status status = pair_.wait(Lanes::warp(), wanted, slot_, Deadline{issued + deadline_ns_});
    const uint64_t took = now_ns() - issued;
    const bool bad = wanted && !status.ok();
    if (bad) {
      record_error(errors_, request, status);
      // Relaxed: a hint to the others.
      AtomicRef<uint32_t, Scope::kDevice>(control_->failed).store(1, kRelaxed);
      if (loses_slot(status)) holds_ = false;
    }
    if (wanted && !bad) {
      commands_ += 1;
      blocks_ += blocks;
      in_flight_ns_ += took;
    }
    waited_ns_ += took;
    return !Lanes::any(bad);
  }

  __device__ bool stopped() const {
    return Lanes::any(AtomicRef<uint32_t, Scope::kDevice>(control_->failed).load(kRelaxed) != 0);
  }

  /// Adds what this warp read since the last call.
  __device__ void report(ScanTally* tally) {
    const uint32_t commands = __reduce_add_sync(~0u, commands_);
    const uint32_t blocks = __reduce_add_sync(~0u, blocks_);
    uint64_t in_flight = in_flight_ns_;
#pragma unroll
    for (uint32_t distance = 16; distance != 0; distance /= 2) {
      in_flight += __shfl_xor_sync(~0u, in_flight, distance);
    }
    if (Lanes::leads() && commands != 0) {
      const uint64_t now = now_ns();
      atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
      atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
      atomicAdd(&tally->in_flight_ns, static_cast<unsigned long long>(in_flight));
      atomicAdd(&tally->waited_ns, static_cast<unsigned long long>(waited_ns_));
      atomicAdd(&tally->warp_ns, static_cast<unsigned long long>(now - began_ns_));
      began_ns_ = now;
    }
    commands_ = blocks_ = 0;
    in_flight_ns_ = waited_ns_ = 0;
  }

  __device__ void end() {
    if (holds_) pair_.release_slot(slot_);
    Lanes::sync();
  }

 private:
  const QueuePair<Scope::kBlock>& pair_;
  uint64_t deadline_ns_;
  ErrorRecord* errors_;
  ScanControl* control_;
  uint32_t slot_ = 0;
  uint32_t holders_;
  uint32_t rank_;
  uint32_t from_;
  uint64_t landing_;
  uint64_t began_ns_;
  uint64_t in_flight_ns_ = 0;
  uint64_t waited_ns_ = 0;
  uint32_t commands_ = 0;
  uint32_t blocks_ = 0;
  bool holds_;
};

/// Leases a pair for the block, lets `work(warp)` run on all warps but the last, which sweeps, and gives the
/// pair back. Dynamic shared memory: the pool's flags_bytes. All threads of the block call.
template <typename Work>
__device__ inline void with_leased_pair(const QueuePoolView& pool, byte* flags, uint32_t lanes,
                                        uint32_t nap_ns, uint64_t deadline_ns, ErrorRecord* errors,
                                        ScanControl* control, Work&& work) {
  __shared__ uint32_t working;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t sweeper = blockDim.x / 32 - 1;
  if (threadIdx.x == 0) working = sweeper;
  BlockLease lease(pool, flags);
  const Status leased = lease.begin(Deadline::in(deadline_ns));
  if (!leased.ok()) {
    if (threadIdx.x == 0) record_error(errors, {Opcode::kRead, 0, 0, 0}, leased);
    return;
  }
  const QueuePair<Scope::kBlock> pair = lease.pair(kScanPatience);
  if (warp == sweeper) {
    // Relaxed: a hint; what is still pending is drained when the lease ends.
    const AtomicRef<uint32_t, Scope::kBlock> left(working);
    while (Lanes::any(left.load(kRelaxed) != 0)) {
      if (pair.sweep(Lanes::warp()) == 0 && nap_ns != 0) __nanosleep(nap_ns);
      Lanes::sync();
    }
  } else {
    ScanWarp mine(pair, lanes, deadline_ns, errors, control);
    work(mine);
    mine.end();
    if (Lanes::leads()) AtomicRef<uint32_t, Scope::kBlock>(working).fetch_sub(1, kRelaxed);
  }
  lease.end(Deadline::in(deadline_ns));
}

#endif

}  // namespace bamquery
