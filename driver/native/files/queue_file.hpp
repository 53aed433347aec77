// Files read past the page cache, by NVMe commands in queue pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/native/files/block_file.hpp"
#include "driver/native/files/open_file.hpp"
#include "driver/native/queues/command_run.hpp"
#include "driver/native/queues/file_queues.hpp"

namespace bamquery {

struct QueueFileOptions {
  std::int64_t block_size = 0;  ///< What reads are counted in; 0 takes what the device can do.
  int depth = 128;              ///< Reads that one call has in flight.
  DirectPath path = DirectPath::kAny;
  std::uint64_t patience_ns = 30'000'000'000;  ///< What a read may take.
};

/// Each call leases a queue pair of the process's; NvmeError says how a command failed.
class QueueFile final : public BlockFile {
 public:
  /// StorageError where the file system has no direct reads or needs larger blocks.
  QueueFile(std::string path, std::int64_t expected_size, const QueueFileOptions& options);

  std::int64_t block_size() const override { return block_size_; }
  std::string io_path() const override;
  std::shared_ptr<SoftwareController> controller() const override;
  ReadCounts read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                         std::byte* target, std::int64_t& mismatch) const override;
  ReadCounts gather(const RowItems& rows, std::byte* target) const override;
  ReadCounts gather(const RowItems& rows, std::byte* target, HeldBlocks& held) const override;
  ReadCounts gather_bit_bytes(const BitItems& rows, std::byte* target) const override;

 private:
  template <typename Items>
  std::vector<Command> commands_of(const Items& items) const;
  template <typename Items>
  ReadCounts gather_items(const Items& items, std::int64_t width, std::byte* target) const;
  ReadCounts run(std::vector<Command>& commands, const CommandRun::Landed& landed) const;
  [[noreturn]] void fail(const QueueNamespace::Place& place, const CommandFailure& failure) const;

  OpenFile file_;
  std::int64_t block_size_;
  QueueFileOptions options_;
  mutable std::optional<QueueNamespace> namespace_;
};

}  // namespace bamquery
