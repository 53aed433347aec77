// Memory or a file that holds the content which benchmarks verify, and the checks themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/core/bench/content.hpp"

namespace bamquery {

/// Writes the content that belongs at `first_sector` on. Sizes are multiples of a sector.
void fill_content(std::span<std::byte> target, std::uint64_t seed, std::uint64_t first_sector);

/// Offset of the first 8 bytes that are not the content of `seed` there, or -1.
std::int64_t find_wrong(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t first_sector);

/// The same where each 8 bytes may be of either seed: a block that somebody writes while it is read.
std::int64_t find_wrong_of_two(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t other,
                               std::uint64_t first_sector);

/// Blocks that were written, marked by any thread.
class WrittenBlocks {
 public:
  explicit WrittenBlocks(std::uint64_t blocks) : words_((blocks + 63) / 64) {}

  // Relaxed: read only after the threads that mark have been joined.
  void mark(std::uint64_t block) {
    words_[block / 64].fetch_or(std::uint64_t{1} << block % 64, std::memory_order_relaxed);
  }
  bool marked(std::uint64_t block) const {
    return (words_[block / 64].load(std::memory_order_relaxed) >> block % 64 & 1) != 0;
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
};

/// What the blocks lie in, mapped: its own memory, or a shared map of a file that is there and large enough.
class BenchBacking {
 public:
  /// No path: memory. Throws StorageError.
  BenchBacking(const std::string& path, std::uint64_t bytes, bool writable);
  BenchBacking(const BenchBacking&) = delete;
  BenchBacking& operator=(const BenchBacking&) = delete;
  ~BenchBacking();

  std::span<std::byte> bytes() const { return {address_, bytes_}; }
  const std::string& path() const { return path_; }

  /// Fills all of it, on all cores.
  void fill(std::uint64_t seed) const;

  /// Offset of the first wrong 8 bytes, or -1: blocks that were written are to be of `written_seed`, all
  /// others of `seed`.
  std::int64_t check(std::uint64_t seed, std::uint64_t written_seed, std::uint32_t block_bytes,
                     const WrittenBlocks& written) const;

 private:
  std::string path_;
  std::byte* address_ = nullptr;
  std::size_t bytes_;
};

}  // namespace bamquery
