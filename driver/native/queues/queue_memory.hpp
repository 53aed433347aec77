// The memory of a controller's queue pairs: doorbells, rings, PRP lists and landing buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/core/queues/queue_pool.hpp"

namespace bamquery {

/// The shape of a controller's queue pairs; all are alike.
struct QueueShape {
  std::uint32_t leased_pairs = 1;
  std::uint32_t shared_pairs = 1;
  std::uint32_t depth = 256;        ///< Places of a ring: a power of two, 2 to 65,536.
  std::uint32_t slots = 255;        ///< Of a pair: 1 to depth - 1.
  std::uint32_t slot_bytes = 4096;  ///< Power of two, block_bytes to 2 MiB; not above the controller's MDTS.
  std::uint32_t block_bytes = 512;  ///< LBA size of all the controller's namespaces: 512 or 4096.
  std::uint32_t doorbell_stride = 4;  ///< CAP.DSTRD; 4 gives each doorbell a cache line.

  std::uint32_t pairs() const { return leased_pairs + shared_pairs; }
};

/// Owns one page-aligned run of zeros that holds all of it. Pair i is NVMe queue i + 1. A bus address is what
/// a controller in this process needs to reach the memory: its virtual address.
class QueueMemory {
 public:
  /// std::invalid_argument names what is wrong with the shape; std::bad_alloc.
  explicit QueueMemory(const QueueShape& shape);
  ~QueueMemory();
  QueueMemory(const QueueMemory&) = delete;
  QueueMemory& operator=(const QueueMemory&) = delete;

  const QueueShape& shape() const { return shape_; }

  /// All of the memory, for pinning.
  std::byte* address() const { return address_; }
  std::size_t size() const { return size_; }

  // What a controller reads and writes. `pair` < shape().pairs().
  static std::uint16_t queue_id(std::uint32_t pair) { return static_cast<std::uint16_t>(pair + 1); }
  std::span<std::byte> doorbells() const { return {address_, submissions_}; }
  std::uint32_t* tail_doorbell(std::uint32_t pair) const;
  std::uint32_t* head_doorbell(std::uint32_t pair) const;
  SubmissionEntry* submissions(std::uint32_t pair) const;
  CompletionEntry* completions(std::uint32_t pair) const;

  /// All landing buffers, and all PRP lists.
  std::span<std::byte> landing() const { return {address_ + landing_, landing_bytes()}; }
  std::span<const std::byte> prp_lists() const { return {address_ + lists_, landing_ - lists_}; }

  /// The memory at a bus address, if all the bytes lie in landing buffers; nullptr otherwise.
  std::byte* landing_at(std::uint64_t bus, std::uint64_t bytes) const;

  /// A PRP list of so many entries at a bus address, if it lies in one page of those written here, on a
  /// multiple of 8; nullptr otherwise.
  const std::uint64_t* prp_list_at(std::uint64_t bus, std::uint64_t entries) const;

  /// Bytes of what a pool's users share: views, bitmap and flags. For a GPU they lie in its memory.
  std::size_t pool_bytes() const;

  /// Writes a pool with fresh flags to `staging`, as it must lie at `pool` (on a multiple of 128) where the
  /// running side sees it; that side sees this memory at `rings`. The rings must be fresh, too.
  QueuePoolView make_pool(std::span<std::byte> staging, std::byte* rings, std::byte* pool) const;

  /// For threads of this process, in memory of their own.
  QueuePoolView make_pool(std::span<std::byte> pool) const { return make_pool(pool, address_, pool.data()); }

  /// Makes all rings and doorbells zeros again; nobody may be using them.
  void reset_rings();

 private:
  std::size_t landing_bytes() const { return std::size_t{shape_.pairs()} * shape_.slots * shape_.slot_bytes; }

  QueueShape shape_;
  std::uint32_t list_bytes_;  // of a slot's PRP list
  // Where parts begin, from address_ on; doorbells come first.
  std::size_t submissions_, completions_, lists_, landing_, size_;
  std::size_t submission_ring_bytes_, completion_ring_bytes_;
  std::byte* address_;
};

}  // namespace bamquery
