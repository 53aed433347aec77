// Many read commands through one queue pair, as many in flight as allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "driver/native/files/block_ranges.hpp"
#include "driver/native/queues/file_queues.hpp"

namespace bamquery {

struct CommandFailure {
  std::uint64_t lba;
  Status status;
};

/// Commands of one namespace, which `QueueLease::serve` carries out.
class CommandRun {
 public:
  /// Where a command's blocks have landed; its buffer is used again afterwards.
  using Landed = std::function<void(const Command& command, const std::byte* blocks)>;

  /// `depth` commands in flight at most, each of which may take `patience_ns`. None is longer than a slot.
  CommandRun(QueueLease& lease, std::uint32_t nsid, std::span<const Command> commands, std::uint32_t depth,
             std::uint64_t patience_ns)
      : lease_(lease), nsid_(nsid), commands_(commands), depth_(depth), patience_ns_(patience_ns) {}

  /// Issues and waits for all of them. The first failure stops it, once what is in flight has ended.
  std::optional<CommandFailure> run(const Landed& landed);

 private:
  struct Flight {
    std::uint32_t slot;
    const Command* command;
    Deadline deadline;
  };

  void issue_more();
  bool take_ended(const Landed& landed);
  void finish(const Flight& flight, Status status, const Landed& landed);
  void fail(const Command& command, Status status);
  std::uint64_t lba_of(const Command& command) const;

  QueueLease& lease_;
  std::uint32_t nsid_;
  std::span<const Command> commands_;
  std::uint32_t depth_;
  std::uint64_t patience_ns_;
  std::size_t next_ = 0;
  std::int64_t bytes_in_flight_ = 0;
  std::vector<Flight> flights_;
  std::optional<CommandFailure> failure_;
};

}  // namespace bamquery
