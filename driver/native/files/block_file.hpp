// A file as an array of blocks: what mapped files and those behind queues have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "driver/native/files/block_ranges.hpp"
#include "driver/native/files/held_blocks.hpp"

namespace bamquery {

class SoftwareController;

/// Reads of many small or few large pieces. Items ascend; targets are dense, in the order of items. All
/// methods may be called by many threads at once; they throw StorageError where bytes cannot be had.
class BlockFile {
 public:
  virtual ~BlockFile() = default;

  virtual std::int64_t block_size() const = 0;

  /// How the kernel is asked: "page cache", or see AsyncExecutor::path().
  virtual std::string io_path() const = 0;

  /// Who carries out the reads; null for files that are read without commands.
  virtual std::shared_ptr<SoftwareController> controller() const { return nullptr; }

  /// Copies all ranges. With `checksums` (one a range, or none) compares the CRC-32C of each, and returns the
  /// first that differs in `mismatch`, -1 where all agree.
  virtual ReadCounts read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                 std::byte* target, std::int64_t& mismatch) const = 0;

  /// Takes ranges `first` to `end` - 1, whose bytes lie end to end and stay where they are until it returns.
  using TakeRanges =
      std::function<void(std::size_t first, std::size_t end, std::span<const std::byte> bytes)>;

  /// Reads ranges as `read_ranges` does, for who needs their bytes but once: hands them out in turns, in
  /// order, once their checksums were found to agree, and none from the turn of the first that differs on.
  virtual ReadCounts hand_out_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                     const TakeRanges& take, std::int64_t& mismatch) const {
    const auto bytes = std::accumulate(ranges.lengths.begin(), ranges.lengths.end(), std::int64_t{0});
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
    const auto whole = std::make_unique_for_overwrite<std::byte[]>(size);
    const ReadCounts counts = read_ranges(ranges, checksums, whole.get(), mismatch);
    if (mismatch < 0 && ranges.size() > 0) take(0, ranges.size(), {whole.get(), size});
    return counts;
  }

  /// Whether ranges, some of which will be read, are probably in memory already.
  virtual bool are_at_hand(const RangeItems& /*ranges*/) const { return false; }

  /// Has ranges fetched that `read_expected` will read soon, where that makes it faster.
  virtual void expect_ranges(const RangeItems& /*ranges*/) const {}

  /// Reads ranges as `read_ranges` does, in few pieces after each other: what they cost together, the caller
  /// counts.
  virtual void read_expected(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                             std::byte* target, std::int64_t& mismatch) const {
    read_ranges(ranges, checksums, target, mismatch);
  }

  virtual ReadCounts gather(const RowItems& rows, std::byte* target) const = 0;

  /// The same, but reads and counts only blocks that are not held, and holds these from then on.
  virtual ReadCounts gather(const RowItems& rows, std::byte* target, HeldBlocks& held) const = 0;

  /// One byte a row, which the caller reduces to the row's bit.
  virtual ReadCounts gather_bit_bytes(const BitItems& rows, std::byte* target) const = 0;
};

}  // namespace bamquery
