// Blocks moved between a backing and memory, by one path or another, every byte compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/core/bench/access_pattern.hpp"
#include "driver/native/bench/backing.hpp"
#include "driver/native/bench/clients.hpp"

namespace bamquery {

/// What the clients of every path do. The backing holds the content of `seed`; writes put that of
/// `written_seed` there.
struct BlockJob {
  std::uint32_t block_bytes;  ///< A power of two of at least 512.
  std::uint32_t clients;
  std::uint32_t depth;  ///< Operations that each client keeps in flight, where the path can.
  AccessPattern pattern;
  double write_share;
  std::uint64_t seed;
  bool verify;

  std::uint64_t written_seed() const { return seed + 1; }
  std::uint64_t offset(std::uint64_t block) const { return block * block_bytes; }

  /// Whether a client's `count`th operation is a write.
  bool writes(std::uint64_t client, std::uint64_t count) const {
    // Another stream than the one that draws the block.
    return write_share > 0 && RandomStream::of(~seed, client, count).unit() < write_share;
  }

  /// Fills what a write of this block sends.
  void prepare(std::span<std::byte> target, std::uint64_t block) const {
    fill_content(target, written_seed(), offset(block) / kContentSectorBytes);
  }

  /// Compares what a read of this block brought.
  void compare(std::span<const std::byte> bytes, std::uint64_t block, ClientTally& tally) const {
    if (!verify) return;
    const std::uint64_t sector = offset(block) / kContentSectorBytes;
    const std::int64_t wrong = write_share > 0 ? find_wrong_of_two(bytes, seed, written_seed(), sector)
                                               : find_wrong(bytes, seed, sector);
    if (wrong >= 0) tally.mismatch(offset(block) + static_cast<std::uint64_t>(wrong));
  }
};

// The paths. What is referred to must outlive the work.

/// memcpy from and to the backing's map.
BenchClients::Work mapped_work(const BlockJob& job, const BenchBacking& backing, WrittenBlocks& written);

/// io_uring on the backing's file, past the page cache where `direct`. Throws StorageError, and
/// IoUringUnavailable, when it begins.
BenchClients::Work uring_work(const BlockJob& job, const std::string& path, bool direct,
                              WrittenBlocks& written);

class BenchRings;
class FirstReads;

/// NVMe commands through a leased queue pair each, which a controller carries out. `first`: what is read is
/// compared with what the same block's first read brought, not with the content; nullptr otherwise.
BenchClients::Work rings_work(const BlockJob& job, BenchRings& rings, WrittenBlocks& written,
                              FirstReads* first = nullptr);

}  // namespace bamquery
