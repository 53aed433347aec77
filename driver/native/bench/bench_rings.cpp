#include "driver/native/bench/bench_rings.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

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
    sum.commands += header.ticket - first_counter(view.depth);
    sum.doorbells += header.doorbells;
    sum.errors += header.errors;
    sum.missed += header.missed;
    sum.broken += header.broken;
  }
  return sum;
}

BenchDrives::BenchDrives(std::vector<std::unique_ptr<BenchRings>> rings, std::uint64_t stripe_bytes,
                         std::uint32_t page_bytes)
    : rings_(std::move(rings)) {
  if (rings_.empty()) throw std::invalid_argument("benchmark: there is no drive");
  for (std::uint32_t drive = 0; drive < count(); ++drive) {
    pools_.push_back(rings_[drive]->pool());
    members_.push_back({drive, rings_[drive]->nsid()});
  }
  if (count() == 1) return;
  const std::uint64_t pages = stripe_bytes / page_bytes;
  if (stripe_bytes % page_bytes != 0 || (pages & (pages - 1)) != 0 || pages == 0) {
    throw std::invalid_argument("benchmark: stripes are of a power of two pages");
  }
  while (std::uint64_t{1} << stripe_shift_ < pages) ++stripe_shift_;
}

std::uint32_t BenchDrives::block_bytes() const {
  std::uint32_t least = ~0u;
  for (const QueuePoolView& pool : pools_) least = std::min(least, pool.pairs[0].block_bytes);
  return least;
}

ArrayExtent BenchDrives::extent(std::uint64_t bytes) const {
  ArrayExtent found{0, 0, bytes, bytes / block_bytes(), members_[0].nsid, 0};
  if (count() > 1) {
    found.stripes = members_.data();
    found.members = count();
    found.stripe_shift = stripe_shift_;
  }
  return found;
}

}  // namespace bamquery
