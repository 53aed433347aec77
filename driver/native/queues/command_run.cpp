#include "driver/native/queues/command_run.hpp"

#include <algorithm>

namespace bamquery {
namespace {

// More brings no device more, and costs memory.
constexpr std::int64_t kMostBytesInFlight = 8 << 20;

// Copied before the device gets its next commands: it should not run dry meanwhile.
constexpr std::int64_t kMostBytesAtOnce = 512 << 10;

// Between looks at deadlines, where a device does not answer.
constexpr std::uint64_t kLongestNapNs = 50'000'000;

}  // namespace

std::optional<CommandFailure> CommandRun::run(const Landed& landed) {
  for (bool more_ended = false;;) {
    issue_more();
    if (flights_.empty()) return failure_;  // nothing is left, or nothing more is asked
    // What somebody else has carried out for us, who closes a file, is not waited for.
    more_ended |= lease_.pair().sweep() > 0;
    lease_.serve(more_ended ? 0 : std::min(kLongestNapNs, patience_ns_));
    lease_.pair().sweep();
    more_ended = take_ended(landed);
  }
}

void CommandRun::issue_more() {
  const std::uint32_t lba_bytes = lease_.pair().view().block_bytes;
  while (!failure_ && next_ < commands_.size() && flights_.size() < depth_ &&
         (flights_.empty() || bytes_in_flight_ < kMostBytesInFlight)) {
    const Command& command = commands_[next_];
    std::uint32_t slot = 0;
    const Status acquired = lease_.pair().acquire_slot(Deadline{0}, slot);
    if (!acquired.ok()) {
      if (flights_.empty()) fail(command, acquired);
      return;
    }
    ++next_;
    const Request request{Opcode::kRead, nsid_, lba_of(command),
                          static_cast<std::uint32_t>(command.length / lba_bytes)};
    const Status issued = lease_.pair().issue(slot, request);
    if (issued.ok()) {
      flights_.push_back({slot, &command, Deadline::in(patience_ns_)});
      bytes_in_flight_ += command.length;
    } else {
      lease_.pair().release_slot(slot);
      fail(command, issued);
    }
  }
}

// True if it stopped before it had seen all.
bool CommandRun::take_ended(const Landed& landed) {
  const std::uint64_t now = now_ns();
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < flights_.size();) {
    const Flight flight = flights_[i];
    Status status;
    if (!lease_.pair().try_wait(flight.slot, status)) {
      const bool broken = lease_.pair().broken();
      if (!broken && now < flight.deadline.at_ns) {
        ++i;
        continue;
      }
      // If it ended just now, that is how it ended.
      status = lease_.pair().abandon(flight.slot, broken ? status::kQueueBroken : status::kDeadlineMissed);
    }
    flights_[i] = flights_.back();
    flights_.pop_back();
    finish(flight, status, landed);
    taken += flight.command->length;
    if (taken >= kMostBytesAtOnce) return true;
  }
  return false;
}

void CommandRun::finish(const Flight& flight, Status status, const Landed& landed) {
  bytes_in_flight_ -= flight.command->length;
  if (!status.ok()) {
    fail(*flight.command, status);
  } else if (!failure_) {
    landed(*flight.command, lease_.pair().landing(flight.slot));
  }
  if (!loses_slot(status)) lease_.pair().release_slot(flight.slot);
}

void CommandRun::fail(const Command& command, Status status) {
  if (!failure_) failure_ = CommandFailure{lba_of(command), status};
}

std::uint64_t CommandRun::lba_of(const Command& command) const {
  return static_cast<std::uint64_t>(command.offset) / lease_.pair().view().block_bytes;
}

}  // namespace bamquery
