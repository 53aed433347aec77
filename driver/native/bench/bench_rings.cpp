#include "driver/native/bench/bench_rings.hpp"

namespace bamquery {

BenchRings::BenchRings(QueueMemory& memory, Controller& controller, std::uint32_t nsid,
                       std::uint64_t deadline_ns, bool served_by_clients)
    : controller_(controller),
      nsid_(nsid),
      deadline_ns_(deadline_ns),
      served_by_clients_(served_by_clients),
      first_queue_(controller.first_queue()),
      pool_memory_(allocate_aligned(memory.pool_bytes())),
      pool_(memory.make_pool({pool_memory_.get(), memory.pool_bytes()})),
      activity_(controller) {}

RingCounts BenchRings::counts() const {
  RingCounts sum;
  for (std::uint32_t number = 0; number < pool_.leased_count; ++number) {
    const QueuePairView& view = pool_.pairs[number];
    // Nobody leases it: its flags are where they rest.
    const QueuePair<Scope::kBlock> pair(view, view.flags);
    const QueueHeader& header = pair.flags().header();
    sum.doorbells += header.doorbells;
    sum.errors += header.errors;
    sum.missed += header.missed;
    sum.broken += header.broken;
  }
  return sum;
}

}  // namespace bamquery
