// A session's queue pairs, ready for use, and reads that look at every byte.
#pragma once

#include <memory>
#include <string>

#include "driver/native/status_text.hpp"
#include "tests/native/conformance/check.hpp"
#include "tests/native/conformance/content.hpp"
#include "tests/native/conformance/pairs.hpp"

namespace bamquery::conformance {

using SharedPair = ServicedPair<Scope::kDevice>;

/// A session with a pool of its own, whose controller looks for commands as long as it lives.
class Rings {
 public:
  Rings(const Context& context, const QueueShape& shape)
      : session_(context.open(shape)), activity_(controller()), pool_(std::make_unique<Pool>(memory())) {}

  QueueMemory& memory() const { return session_->memory(); }
  Controller& controller() const { return session_->controller(); }
  Session& session() const { return *session_; }
  const Pool& pool() const { return *pool_; }
  SharedPair shared(std::uint32_t hint = 0) const { return {shared_pair(pool_->view(), hint), controller()}; }

  /// Goes on with fresh rings, after the controller has stopped.
  void recreate() {
    controller().recreate_queues();
    pool_ = std::make_unique<Pool>(memory());
    session_->restart();
  }

 private:
  std::unique_ptr<Session> session_;
  Controller::Activity activity_;
  std::unique_ptr<Pool> pool_;
};

/// A lease that is had in time.
struct SureLease : Lease {
  SureLease(const Rings& rings, const Context& context)
      : Lease(rings.pool(), rings.controller(), context.soon()) {
    EXPECT(begun().ok(), status_text(begun()));
  }
};

template <Scope kScope>
std::uint32_t slot_of_pair(const Context& context, const ServicedPair<kScope>& pair) {
  std::uint32_t slot = 0;
  const Status status = pair.acquire_slot(context.soon(), slot);
  EXPECT(status.ok(), status_text(status));
  return slot;
}

/// Waits for the command of a slot, which has to end with that status.
template <Scope kScope>
void expect_status(const Context& context, const ServicedPair<kScope>& pair, std::uint32_t slot,
                   Status expected = status::kSuccess) {
  const Status status = pair.wait(slot, context.soon());
  EXPECT(status == expected, status_text(status) + ", not " + status_text(expected));
}

inline Request reading(const Space& space, std::uint64_t lba, std::uint32_t blocks) {
  return {Opcode::kRead, space.nsid, lba, blocks};
}

/// A run of so many blocks somewhere in those that hold the pattern.
inline std::uint64_t some_lba(const Space& space, Random& random, std::uint32_t blocks) {
  EXPECT(space.patterned >= blocks, "the namespace has too few blocks with the pattern");
  return random() % (space.patterned - blocks + 1);
}

/// Starts a read into a slot whose bytes are guards before.
template <Scope kScope>
void start_read(const ServicedPair<kScope>& pair, std::uint32_t slot, const Request& request,
                std::uint32_t block_bytes) {
  fill_guard({pair.landing(slot), std::size_t{request.blocks} * block_bytes});
  const Status issued = pair.issue(slot, request);
  EXPECT(issued.ok(), status_text(issued));
}

template <Scope kScope>
void finish_read(const Context& context, const ServicedPair<kScope>& pair, std::uint32_t slot,
                 const Space& space, const Request& request) {
  expect_status(context, pair, slot);
  expect_pattern(space, request.lba, {pair.landing(slot), std::size_t{request.blocks} * space.block_bytes});
}

template <Scope kScope>
void read_and_compare(const Context& context, const ServicedPair<kScope>& pair, std::uint32_t slot,
                      const Space& space, std::uint64_t lba, std::uint32_t blocks) {
  const Request request = reading(space, lba, blocks);
  start_read(pair, slot, request, space.block_bytes);
  finish_read(context, pair, slot, space, request);
}

/// Shows that a pair works: reads a block.
template <Scope kScope>
void expect_works(const Context& context, const ServicedPair<kScope>& pair) {
  const std::uint32_t slot = slot_of_pair(context, pair);
  read_and_compare(context, pair, slot, context.space(), 1, 1);
  pair.release_slot(slot);
}

}  // namespace bamquery::conformance
