// The memory of a controller's queue pairs: doorbells, rings, PRP lists and landing buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/core/queues/queue_pool.hpp"
#include "driver/native/own_process.hpp"

namespace bamquery {

/// The shape of a controller's queue pairs; all are alike.
struct QueueShape {
  std::uint32_t leased_pairs = 1;
  std::uint32_t shared_pairs = 1;
  std::uint32_t depth = 256;        ///< Places of a ring: a power of two, 2 to 65,536.
  std::uint32_t slots = 255;        ///< Of a pair: 1 to depth - 1.
  std::uint32_t slot_bytes = 4096;  ///< Power of two, block_bytes to 2 MiB; not above the controller's MDTS.
  std::uint32_t block_bytes = 512;  ///< LBA size of all the controller's namespaces: 512 or 4096.
  std::uint32_t doorbell_stride =
      4;  ///< CAP.DSTRD, where a drive has one; 4: a cache line for each doorbell.

  std::uint32_t pairs() const { return leased_pairs + shared_pairs; }
};

/// How a controller reaches the memory, and by which doorbells it is told. As made: a controller in this
/// process, whose bus addresses are virtual addresses, and whose doorbells are in the memory.
struct QueuePlace {
  std::uint64_t bus = 0;           ///< Of address(): a multiple of 4,096. 0: its virtual address.
  std::byte* doorbells = nullptr;  ///< Those of a drive, laid out like its registers from 1000h on, as mapped
                                   ///< here. nullptr: in the memory.
  bool registers = false;          ///< They are registers, not memory that the drive looks at.
  std::uint32_t first_queue = 1;   ///< Queue id of pair 0.
  bool read_only = false;          ///< Nothing but reads is to reach the controller.
};

/// What a controller does with a part of the memory.
enum class QueueAccess : std::uint8_t { kReads, kWrites, kReadsAndWrites };

/// A run of whole pages of the memory.
struct QueueRegion {
  std::span<std::byte> bytes;
  QueueAccess access;
};

/// One page-aligned run of memory that holds all of it. Pair i is NVMe queue first_queue + i.
class QueueMemory {
 public:
  /// std::invalid_argument names what is wrong with the shape; std::bad_alloc.
  explicit QueueMemory(const QueueShape& shape);
  /// Lies in memory that outlives it: whole pages of zeros, bytes(shape) of them or more. What another
  /// process has placed there may be looked at in the same place.
  QueueMemory(const QueueShape& shape, std::span<std::byte> memory, const QueuePlace& place = {});
  ~QueueMemory();
  QueueMemory(const QueueMemory&) = delete;
  QueueMemory& operator=(const QueueMemory&) = delete;

  const QueueShape& shape() const { return shape_; }

  /// Says who serves it, before any pool is made. std::invalid_argument names what cannot be.
  void place(const QueuePlace& place);

  /// What the memory of such a shape takes. std::invalid_argument as the constructor.
  static std::size_t bytes(const QueueShape& shape);

  /// All of the memory, for pinning.
  std::byte* address() const { return address_; }
  std::size_t size() const { return size_; }

  /// Those of its queue pairs that are a drive's, with what lies before them; nothing where they are in the
  /// memory.
  std::span<std::byte> drive_doorbells() const;
  /// Whether these are registers: another processor maps them as such.
  bool has_registers() const { return place_.registers; }

  // What a controller reads and writes. `pair` < shape().pairs().
  std::uint16_t queue_id(std::uint32_t pair) const {
    return static_cast<std::uint16_t>(place_.first_queue + pair);
  }
  /// Doorbells in the memory, which a drive with registers of its own may read as shadows.
  std::span<std::byte> doorbells() const { return {address_, submissions_}; }
  /// All of it by what a controller has to do there: doorbells and submission rings, completion rings, PRP
  /// lists, landing buffers; those are read, too, where it `writes` to namespaces.
  std::array<QueueRegion, 4> regions(bool writes) const;
  /// What a controller calls an address within the memory.
  std::uint64_t bus(const void* within) const {
    return bus_ + static_cast<std::uint64_t>(static_cast<const std::byte*>(within) - address_);
  }
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
  /// running side sees it; that side sees this memory at `rings`, and a drive's doorbells at `doorbells`
  /// (nullptr: where this process does). The rings must be fresh, too.
  QueuePoolView make_pool(std::span<std::byte> staging, std::byte* rings, std::byte* pool,
                          std::byte* doorbells = nullptr) const;

  /// For threads of this process, in memory of their own.
  QueuePoolView make_pool(std::span<std::byte> pool) const { return make_pool(pool, address_, pool.data()); }

  /// Makes all rings and the memory's doorbells zeros again; nobody may be using them.
  void reset_rings();

 private:
  QueueMemory(const QueueShape& shape, std::byte* address);
  void write_lists();
  std::uint32_t doorbell_number(std::uint32_t pair) const;
  std::uint32_t* doorbell(std::uint32_t offset) const;
  std::size_t landing_bytes() const { return std::size_t{shape_.pairs()} * shape_.slots * shape_.slot_bytes; }

  QueueShape shape_;
  QueuePlace place_;
  std::uint64_t bus_ = 0;     ///< Of address_.
  std::uint32_t list_bytes_;  // of a slot's PRP list
  // Where parts begin, from address_ on; doorbells come first.
  std::size_t submissions_, completions_, lists_, landing_, size_;
  std::size_t submission_ring_bytes_, completion_ring_bytes_;
  std::byte* address_;
  bool owned_ = false;  ///< Mapped here, to be unmapped,
  OwnProcess process_;  ///< but not by children: what a drive reaches is not there.
};

}  // namespace bamquery
