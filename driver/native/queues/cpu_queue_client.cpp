#include "driver/native/queues/cpu_queue_client.hpp"

#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>

#include "driver/native/errors.hpp"
#include "driver/native/status_text.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kInterruptNs = 50'000'000;

// Small commands share a doorbell; of more bytes the controller hears at once, so that it does not wait while
// we copy.
constexpr std::size_t kDoorbellBytes = 128 << 10;

const char* verb(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
      return "read";
    case Opcode::kWrite:
      return "write";
    case Opcode::kFlush:
      return "flush";
  }
  return "command";
}

}  // namespace

// A lease, and the commands that one call has in flight on it.
class CpuQueueClient::Call {
 public:
  Call(CpuQueueClient& client, Opcode opcode, std::uint32_t nsid, Deadline deadline,
       const Interrupt& interrupt)
      : client_(client),
        opcode_(opcode),
        nsid_(nsid),
        deadline_(deadline),
        interrupt_(interrupt),
        flags_(allocate_aligned(client.pool_.flags_bytes)),
        lease_(client.pool_, flags_.get()) {}

  // `to` and `from` are null where nothing is to be copied that way.
  void run(std::uint64_t lba, std::byte* to, const std::byte* from, std::size_t bytes) {
    const std::uint32_t block = client_.memory_.shape().block_bytes;
    run_pieces([lba, block](std::size_t at) { return lba + at / block; }, to, from, bytes,
               client_.memory_.shape().slot_bytes);
  }

  // Pieces of `most` bytes; the one at byte `at` is of the block `lba_of(at)` and those behind it.
  template <typename LbaOf>
  void run_pieces(LbaOf lba_of, std::byte* to, const std::byte* from, std::size_t bytes, std::size_t most) {
    begin(lba_of(0));
    const ServicedPair<Scope::kBlock> pair(lease_.pair(), client_.controller_);
    const std::uint32_t block = client_.memory_.shape().block_bytes;
    std::size_t at = 0;
    bool more = true;
    while (error_.ok() && (more || !pending_.empty())) {
      std::uint32_t slot = 0;
      std::size_t silent_bytes = 0;
      while (more && acquire(pair, lba_of(at), slot)) {
        const std::size_t piece = std::min(most, bytes - at);
        if (from != nullptr) std::memcpy(pair.landing(slot), from + at, piece);
        const Request request{opcode_, nsid_, lba_of(at), static_cast<std::uint32_t>(piece / block)};
        pending_.push_back({slot, request.lba, to == nullptr ? nullptr : to + at, piece});
        pair.issue(Silent{}, true, slot, request);  // the wait says the same
        at += piece;
        more = at < bytes;
        silent_bytes += piece;
        if (silent_bytes >= kDoorbellBytes) break;
      }
      pair.ring_doorbell();
      if (silent_bytes < kDoorbellBytes) finish_some(pair);
    }
    while (!pending_.empty()) finish_one(pair);
    lease_.end(Deadline::in(0));
    if (!error_.ok()) fail(failed_lba_);
  }

 private:
  struct Pending {
    std::uint32_t slot;
    std::uint64_t lba;
    std::byte* to;
    std::size_t bytes;
  };

  void begin(std::uint64_t lba) {
    for (;;) {
      const Deadline slice{std::min(deadline_.at_ns, now_ns() + kInterruptNs)};
      error_ = lease_.begin(slice);
      if (error_.ok()) return;
      if (!(error_ == status::kNoQueuePair) || deadline_.passed()) fail(lba);
      if (interrupt_ && interrupt_()) {
        error_ = status::kAbortRequested;
        fail(lba);
      }
    }
  }

  // One look while commands are in flight; without any, a slot in quarantine has to come back.
  bool acquire(const ServicedPair<Scope::kBlock>& pair, std::uint64_t lba, std::uint32_t& slot) {
    const Deadline until = pending_.empty() ? deadline_ : Deadline{0};
    const Status status = pair.acquire_slot(until, slot);
    if (!status.ok() && pending_.empty()) note(status, lba);
    return status.ok();
  }

  // Waits for one, and takes those behind it that have ended, too: as many places for new commands, of which
  // the controller is told by one doorbell.
  void finish_some(const ServicedPair<Scope::kBlock>& pair) {
    std::size_t taken = 0;
    for (Status ended; !pending_.empty() && taken < kDoorbellBytes;) {
      if (taken > 0 && !pair.try_wait(pending_.front().slot, ended)) return;
      taken += std::max<std::size_t>(pending_.front().bytes, 1);
      finish_one(pair);
    }
  }

  void finish_one(const ServicedPair<Scope::kBlock>& pair) {
    const Pending command = pending_.front();
    pending_.pop_front();
    Status status;
    for (;;) {
      const Deadline slice{std::min(deadline_.at_ns, now_ns() + kInterruptNs)};
      if (pair.wait_until(command.slot, slice, status)) break;
      if (!deadline_.passed() && !(interrupt_ && interrupt_())) continue;
      status = pair.pair().abandon(command.slot,
                                   deadline_.passed() ? status::kDeadlineMissed : status::kAbortRequested);
      if (status == status::kAbortRequested) {
        note(status, command.lba);
        return;  // the slot went with it
      }
      break;
    }
    if (status.ok() && command.to != nullptr) {
      std::memcpy(command.to, pair.landing(command.slot), command.bytes);
    }
    if (!status.ok()) note(status, command.lba);
    if (!loses_slot(status)) pair.release_slot(command.slot);
  }

  void note(Status status, std::uint64_t lba) {
    if (!error_.ok()) return;
    error_ = status;
    failed_lba_ = lba;
  }

  [[noreturn]] void fail(std::uint64_t lba) const {
    const auto target = client_.controller_.shape_of(nsid_);
    throw NvmeError(target ? target->name : "",
                    std::string(verb(opcode_)) + " failed: " + status_text(error_), nsid_, lba, error_);
  }

  CpuQueueClient& client_;
  Opcode opcode_;
  std::uint32_t nsid_;
  Deadline deadline_;
  const Interrupt& interrupt_;
  AlignedBuffer flags_;
  BlockLease lease_;
  std::deque<Pending> pending_;
  Status error_ = status::kSuccess;  ///< The first.
  std::uint64_t failed_lba_ = 0;
};

CpuQueueClient::CpuQueueClient(QueueMemory& memory, Controller& controller)
    : memory_(memory),
      controller_(controller),
      activity_(controller),
      pool_memory_(allocate_aligned(memory.pool_bytes())),
      pool_(memory.make_pool({pool_memory_.get(), memory.pool_bytes()})) {
  if (memory.shape().leased_pairs == 0) throw std::invalid_argument("there are no queue pairs to lease");
}

void CpuQueueClient::read(std::uint32_t nsid, std::uint64_t lba, std::span<std::byte> to, Deadline deadline,
                          const Interrupt& interrupt) {
  if (to.empty() || to.size() % memory_.shape().block_bytes != 0) {
    throw std::invalid_argument("reads are of whole blocks");
  }
  Call(*this, Opcode::kRead, nsid, deadline, interrupt).run(lba, to.data(), nullptr, to.size());
}

void CpuQueueClient::read_places(std::uint32_t nsid, std::span<const std::uint64_t> lbas,
                                 std::span<std::byte> to, Deadline deadline, const Interrupt& interrupt) {
  const std::size_t each = lbas.empty() ? 0 : to.size() / lbas.size();
  if (each == 0 || each * lbas.size() != to.size() || each % memory_.shape().block_bytes != 0 ||
      each > memory_.shape().slot_bytes) {
    throw std::invalid_argument("places are of equally many whole blocks, no more than a command moves");
  }
  Call(*this, Opcode::kRead, nsid, deadline, interrupt)
      .run_pieces([lbas, each](std::size_t at) { return lbas[at / each]; }, to.data(), nullptr, to.size(),
                  each);
}

void CpuQueueClient::write(std::uint32_t nsid, std::uint64_t lba, std::span<const std::byte> from,
                           Deadline deadline, const Interrupt& interrupt) {
  if (from.empty() || from.size() % memory_.shape().block_bytes != 0) {
    throw std::invalid_argument("writes are of whole blocks");
  }
  Call(*this, Opcode::kWrite, nsid, deadline, interrupt).run(lba, nullptr, from.data(), from.size());
}

void CpuQueueClient::flush(std::uint32_t nsid, Deadline deadline, const Interrupt& interrupt) {
  Call(*this, Opcode::kFlush, nsid, deadline, interrupt).run(0, nullptr, nullptr, 0);
}

CpuQueueClient::Counts CpuQueueClient::settle() {
  Counts counts;
  for (std::uint32_t number = 0; number < pool_.leased_count; ++number) {
    const QueuePairView& view = pool_.pairs[number];
    // Nobody leases it: its flags are where they rest.
    const QueuePair<Scope::kBlock> pair(view, view.flags);
    controller_.service(number);
    pair.sweep();
    const QueueHeader& header = pair.flags().header();
    counts.errors += header.errors;
    counts.missed += header.missed;
    counts.late += header.late;
    counts.broken += header.broken;
    for (std::uint32_t slot = 0; slot < view.slots; ++slot) {
      const CommandWord word{pair.flags().command(slot)};
      counts.quarantined += word.state() == CommandState::kQuarantined ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace bamquery
