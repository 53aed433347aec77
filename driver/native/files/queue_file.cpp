#include "driver/native/files/queue_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "driver/native/errors.hpp"
#include "driver/native/files/direct_io.hpp"
#include "driver/native/files/landed_items.hpp"
#include "driver/native/queues/command_run.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

// LBAs have 512 or 4096 bytes, whatever else a device may like.
constexpr std::int64_t kSmallLba = 512, kLargeLba = 4096;

}  // namespace

QueueFile::QueueFile(std::string path, std::int64_t expected_size, const QueueFileOptions& options)
    : file_(std::move(path), expected_size, O_DIRECT), block_size_(options.block_size), options_(options) {
  if (options.depth < 1) throw std::invalid_argument("depth must be positive");
  if (options.patience_ns < 1) throw std::invalid_argument("patience must be positive");
  if (block_size_ != 0) check_block_size(block_size_);
  if (block_size_ > FileQueues::kSlotBytes) {
    throw std::invalid_argument("a block of direct reads has at most " +
                                std::to_string(FileQueues::kSlotBytes) + " bytes");
  }
  const std::int64_t smallest = direct_block_size(file_.descriptor(), file_.path());
  if (smallest > kLargeLba) {
    throw StorageError(file_.path(), "its device reads no blocks of less than " + std::to_string(smallest) +
                                         " bytes directly: use reader=\"mapped\"");
  }
  const std::int64_t lba_bytes = smallest > kSmallLba ? kLargeLba : kSmallLba;
  if (block_size_ == 0) block_size_ = lba_bytes;
  if (block_size_ < lba_bytes) {
    throw StorageError(file_.path(), "its device reads blocks of " + std::to_string(lba_bytes) +
                                         " bytes, not of " + std::to_string(block_size_) +
                                         ": set a larger block size");
  }
  namespace_.emplace(file_.path(), options.path, static_cast<std::uint32_t>(lba_bytes));
  namespace_->place();  // finds out now what is wrong with it
}

std::string QueueFile::io_path() const { return namespace_->place().queues->io_path(); }

std::shared_ptr<SoftwareController> QueueFile::controller() const {
  // Of queues that are never destroyed.
  return {std::shared_ptr<void>(), &namespace_->place().queues->controller()};
}

ReadCounts QueueFile::run(std::vector<Command>& commands, const CommandRun::Landed& landed) const {
  if (commands.empty()) return {};
  ReadCounts counts{static_cast<std::int64_t>(commands.size()), 0};
  for (const Command& command : commands) counts.blocks += command.length;
  counts.blocks /= block_size_;  // runs are of whole blocks, if not every command
  QueueNamespace::Place place = namespace_->place();
  const std::uint32_t lba_bytes = place.queues->lba_bytes();
  // A block may be larger than what is left of the namespace, whose blocks are LBAs.
  Command& last = commands.back();
  last.length = std::min(last.length, (file_.size() - last.offset + lba_bytes - 1) / lba_bytes * lba_bytes);
  const Deadline deadline = Deadline::in(options_.patience_ns);
  std::optional<QueueLease> lease(std::in_place, *place.queues, deadline);
  if (lease->status() == status::kQueueBroken) {
    place.queues->replace();
    place = namespace_->place();
    lease.emplace(*place.queues, deadline);
  }
  std::optional<CommandFailure> failure;
  if (lease->status().ok()) {
    failure = CommandRun(*lease, place.nsid, commands, static_cast<std::uint32_t>(options_.depth),
                         options_.patience_ns)
                  .run(landed);
  } else {
    failure = {static_cast<std::uint64_t>(commands[0].offset) / lba_bytes, lease->status()};
  }
  if (failure) fail(place, *failure);
  return counts;
}

void QueueFile::fail(const QueueNamespace::Place& place, const CommandFailure& failure) const {
  const std::uint64_t offset = failure.lba * place.queues->lba_bytes();
  file_.throw_if_truncated();
  throw NvmeError(file_.path(),
                  "cannot be read at byte " + std::to_string(offset) + ": " + status_text(failure.status),
                  place.nsid, failure.lba, failure.status);
}

template <typename Items>
std::vector<Command> QueueFile::commands_of(const Items& items) const {
  check_items(items, file_.size());
  return cut_commands(items, block_size_, FileQueues::kSlotBytes);
}

ReadCounts QueueFile::read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                  std::byte* target, std::int64_t& mismatch) const {
  std::vector<Command> commands = commands_of(ranges);
  const RangeTarget targets(ranges, target);
  RangeVerifier verifier(ranges, targets, checksums, commands);
  const ReadCounts counts = run(commands, [&](const Command& command, const std::byte* blocks) {
    copy_items(ranges, targets, command, blocks);
    verifier.landed(command);
  });
  mismatch = verifier.mismatch();
  return counts;
}

template <typename Items>
ReadCounts QueueFile::gather_items(const Items& items, std::int64_t width, std::byte* target) const {
  std::vector<Command> commands = commands_of(items);
  const FixedTarget targets{target, width};
  return run(commands, [&](const Command& command, const std::byte* blocks) {
    copy_items(items, targets, command, blocks);
  });
}

ReadCounts QueueFile::gather(const RowItems& rows, std::byte* target) const {
  return gather_items(rows, rows.width, target);
}

ReadCounts QueueFile::gather(const RowItems& rows, std::byte* target, HeldBlocks& held) const {
  check_items(rows, file_.size());
  const std::vector<std::int64_t> blocks = held.missing(this, rows, block_size_);
  std::vector<Command> commands =
      cut_commands(whole_blocks(blocks, block_size_), block_size_, FileQueues::kSlotBytes);
  auto bytes =
      std::make_unique_for_overwrite<std::byte[]>(blocks.size() * static_cast<std::size_t>(block_size_));
  const FixedTarget targets{bytes.get(), block_size_};
  const ReadCounts counts = run(commands, [&](const Command& command, const std::byte* landed) {
    // The last command may have less than its blocks, where the file ends.
    std::memcpy(targets[command.first_item], landed, static_cast<std::size_t>(command.length));
  });
  held.add(blocks, std::move(bytes), block_size_);
  held.copy(rows, block_size_, target);
  return counts;
}

ReadCounts QueueFile::gather_bit_bytes(const BitItems& rows, std::byte* target) const {
  return gather_items(rows, 1, target);
}

}  // namespace bamquery
