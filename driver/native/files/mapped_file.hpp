// Files read through a memory map: the page cache is the block device.
#pragma once

#include <string>

#include "driver/native/files/block_file.hpp"
#include "driver/native/files/open_file.hpp"

namespace bamquery {

class MappedFile final : public BlockFile {
 public:
  /// `block_size` is what counts as a block; the page cache has its own.
  MappedFile(std::string path, std::int64_t expected_size, std::int64_t block_size);
  ~MappedFile() override;

  std::int64_t block_size() const override { return block_size_; }
  std::string io_path() const override { return "page cache"; }
  ReadCounts read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                         std::byte* target, std::int64_t& mismatch) const override;
  ReadCounts hand_out_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                             const TakeRanges& take, std::int64_t& mismatch) const override;
  bool are_at_hand(const RangeItems& ranges) const override;
  void expect_ranges(const RangeItems& ranges) const override;
  void read_expected(const RangeItems& ranges, std::span<const std::uint32_t> checksums, std::byte* target,
                     std::int64_t& mismatch) const override;
  ReadCounts gather(const RowItems& rows, std::byte* target) const override;
  ReadCounts gather(const RowItems& rows, std::byte* target, HeldBlocks& held) const override;
  ReadCounts gather_bit_bytes(const BitItems& rows, std::byte* target) const override;

 private:
  std::span<const std::byte> map(int advice) const;
  /// Bytes of the longest run that is asked for before it is read.
  template <typename Items>
  std::int64_t longest_prefetch(std::span<const std::byte> mapped, const Items& items) const;
  /// Checks items, and has their pages fetched where the page cache lacks some.
  template <typename Items>
  void prepare(std::span<const std::byte> mapped, const Items& items) const;
  template <typename Items, typename Work>
  ReadCounts read(std::span<const std::byte> mapped, const Items& items, Work& work) const;

  OpenFile file_;
  std::int64_t block_size_;
  // Two maps of one file, since advice belongs to a map: read ahead for streams, not for scattered rows.
  std::span<const std::byte> stream_;
  std::span<const std::byte> random_;
};

}  // namespace bamquery
