// Files read past the page cache (O_DIRECT), with many reads in flight.
#pragma once

#include <string>

#include "block_file.hpp"
#include "open_file.hpp"

namespace bamquery {

class DirectFile final : public BlockFile {
 public:
  /// `block_size` 0 takes what the device can do; `depth` is how many reads may be in flight. StorageError
  /// where the file system has no direct reads or needs larger blocks.
  DirectFile(std::string path, std::int64_t expected_size, std::int64_t block_size, int depth);

  std::int64_t block_size() const override { return block_size_; }
  ReadCounts read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                         std::byte* target, std::int64_t& mismatch) const override;
  ReadCounts gather(const RowItems& rows, std::byte* target) const override;
  ReadCounts gather_bit_bytes(const BitItems& rows, std::byte* target) const override;

 private:
  std::int64_t device_block_size() const;
  void read_at(std::int64_t offset, std::int64_t length, std::byte* buffer) const;
  template <typename Items, typename Target, typename Finished>
  ReadCounts read_items(const Items& items, const Target& target, const Finished& finished) const;

  OpenFile file_;
  std::int64_t block_size_;
  int depth_;
};

}  // namespace bamquery
