// Queue pairs as a program uses them: pools, leases, shared pairs.
#pragma once

#include <optional>
#include <string>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"
#include "driver/native/queues/serviced_pair.hpp"

namespace bamquery::conformance {

/// A pool of a memory's queue pairs for threads of this process.
class Pool {
 public:
  explicit Pool(QueueMemory& memory)
      : memory_(allocate_aligned(memory.pool_bytes())),
        view_(memory.make_pool({memory_.get(), memory.pool_bytes()})) {}
  const QueuePoolView& view() const { return view_; }

 private:
  AlignedBuffer memory_;
  QueuePoolView view_;
};

/// A leased pair of a pool.
class Lease {
 public:
  using Pair = ServicedPair<Scope::kBlock>;

  Lease(const Pool& pool, Controller& controller, Deadline deadline)
      : flags_(allocate_aligned(pool.view().flags_bytes)), lease_(pool.view(), flags_.get()) {
    begun_ = lease_.begin(deadline);
    if (begun_.ok()) pair_.emplace(lease_.pair(), controller);
  }
  Status begun() const { return begun_; }
  const Pair& pair() const { return *pair_; }
  Status end(Deadline deadline) { return lease_.end(deadline); }

 private:
  AlignedBuffer flags_;
  BlockLease lease_;
  Status begun_;
  std::optional<Pair> pair_;
};

}  // namespace bamquery::conformance
