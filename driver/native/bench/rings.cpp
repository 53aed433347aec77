#include <vector>

#include "driver/core/queues/queue_pool.hpp"
#include "driver/native/aligned_buffer.hpp"
#include "driver/native/bench/bench_rings.hpp"
#include "driver/native/bench/block.hpp"
#include "driver/native/bench/first_reads.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

// What is in flight from one slot.
struct Pending {
  std::uint64_t block;
  std::uint64_t start_ns;
  bool writes;
  bool active;
};

// One client with a leased queue pair, all of whose slots it keeps busy.
class RingClient {
 public:
  RingClient(const BlockJob& job, std::uint32_t client, BenchRings& rings, WrittenBlocks& written,
             FirstReads* first, ClientTally& tally)
      : job_(job),
        client_(client),
        rings_(rings),
        written_(written),
        first_(first),
        tally_(tally),
        flags_(allocate_aligned(rings.pool().flags_bytes)),
        lease_(rings.pool(), flags_.get()) {}

  void run(const std::atomic<bool>& stop) {
    const Status leased = lease_.begin(deadline());
    if (!leased.ok()) {
      tally_.fail("no queue pair: " + status_text(leased));
      return;
    }
    const QueuePair<Scope::kBlock> pair = lease_.pair();
    start(pair);
    Backoff wait;
    while (active_ > 0) {
      rings_.serve(pair.view());
      const bool swept = pair.sweep() > 0;
      if (swept) {
        // A fresh wait: what came may be all there is for a while.
        wait = Backoff();
        collect(pair, stop.load(std::memory_order_relaxed));  // `stop` only says to hurry
      } else {
        wait.pause();
        if (wait.looks() % kLooksPerDeadline == 0 && !collect(pair, true)) break;
      }
    }
    const Status ended = lease_.end(deadline());
    if (!ended.ok()) tally_.fail("commands were left: " + status_text(ended));
  }

 private:
  static constexpr std::uint32_t kLooksPerDeadline = 64;
  static constexpr std::uint64_t kMostErrors = 1000;  // a broken controller answers fast, and for ever

  Deadline deadline() const { return Deadline::in(rings_.deadline_ns()); }

  void start(const QueuePair<Scope::kBlock>& pair) {
    pending_.resize(pair.view().slots);
    for (std::uint32_t i = 0; i < pair.view().slots; ++i) {
      std::uint32_t slot = 0;
      const Status acquired = pair.acquire_slot(deadline(), slot);
      if (!acquired.ok()) {
        tally_.fail("no slot: " + status_text(acquired));
        return;
      }
      issue(pair, slot);
    }
  }

  void issue(const QueuePair<Scope::kBlock>& pair, std::uint32_t slot) {
    const bool writes = job_.writes(client_, asked_);
    const std::uint64_t block = job_.pattern.block(client_, asked_++);
    if (writes) job_.prepare({pair.landing(slot), job_.block_bytes}, block);
    pending_[slot] = {block, now_ns(), writes, true};
    ++active_;
    const std::uint32_t blocks = job_.block_bytes / pair.view().block_bytes;
    // What it refuses, the slot's word says as well.
    (void)pair.issue(slot, {writes ? Opcode::kWrite : Opcode::kRead, rings_.nsid(), block * blocks, blocks});
  }

  // Takes what has ended, and asks again unless it is over. False if a command missed its deadline.
  bool collect(const QueuePair<Scope::kBlock>& pair, bool over) {
    const std::uint64_t now = now_ns();
    for (std::uint32_t slot = 0; slot < pending_.size(); ++slot) {
      Pending& pending = pending_[slot];
      Status ended;
      if (!pending.active) continue;
      if (!pair.try_wait(slot, ended)) {
        if (!pair.broken() && now - pending.start_ns < rings_.deadline_ns()) continue;
        const Status reason = pair.broken() ? status::kQueueBroken : status::kDeadlineMissed;
        ended = pair.abandon(slot, reason);
        if (loses_slot(ended)) {
          pending.active = false;
          --active_;
          fail(pending, ended);
          return false;
        }
      }
      pending.active = false;
      --active_;
      finish(pair, slot, ended);
      if (!over && tally_.errors < kMostErrors) issue(pair, slot);
    }
    return true;
  }

  void finish(const QueuePair<Scope::kBlock>& pair, std::uint32_t slot, Status ended) {
    const Pending& done = pending_[slot];
    if (!ended.ok()) {
      fail(done, ended);
      return;
    }
    tally_.add(job_.block_bytes, now_ns() - done.start_ns);
    if (done.writes) {
      written_.mark(done.block);
    } else if (first_ == nullptr) {
      job_.compare({pair.landing(slot), job_.block_bytes}, done.block, tally_);
    } else if (!first_->same(done.block, {pair.landing(slot), job_.block_bytes})) {
      tally_.mismatch(job_.offset(done.block));
    }
  }

  void fail(const Pending& pending, Status ended) {
    tally_.fail((pending.writes ? "write" : "read") + std::string(" at byte ") +
                std::to_string(job_.offset(pending.block)) + ": " + status_text(ended));
  }

  const BlockJob& job_;
  std::uint32_t client_;
  BenchRings& rings_;
  WrittenBlocks& written_;
  FirstReads* first_;
  ClientTally& tally_;
  AlignedBuffer flags_;
  BlockLease lease_;
  std::vector<Pending> pending_;
  std::uint64_t asked_ = 0;
  std::uint32_t active_ = 0;
};

}  // namespace

BenchClients::Work rings_work(const BlockJob& job, BenchRings& rings, WrittenBlocks& written,
                              FirstReads* first) {
  return [job, &rings, &written, first](std::uint32_t client, const std::atomic<bool>& stop,
                                        ClientTally& tally) {
    RingClient(job, client, rings, written, first, tally).run(stop);
  };
}

}  // namespace bamquery
