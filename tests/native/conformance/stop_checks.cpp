// Stopping with commands in flight: every wait ends, nothing lands any more, and new rings work.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "driver/native/errors.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

// After a stop, completions may be missing: who waits for one that never comes waits so long.
constexpr std::uint64_t kWaitNs = 20'000'000;

bool may_end_so(Status status) {
  return status.ok() || status == status::kQueueDeleted || status == status::kAbortRequested ||
         status == status::kDeadlineMissed;
}

/// Half of the rounds over commands that are held back, where the controller can do that.
void hold_back(const Rings& rings, std::uint32_t round) {
  rings.session().delay(round % 2 == 0 ? 1'000'000'000 : 0);
}

/// In the other rounds some commands end before the stop comes.
void let_some_end(std::uint32_t round, Random& random) {
  if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
}

void stops_reads(Context& context) {
  const Space& space = context.space();
  const std::uint32_t blocks = std::min(65536u, context.limits().transfer_bytes) / space.block_bytes;
  Rings rings(context, context.shape(0, 2, 32, 65536));
  std::uint64_t answered = 0, ended = 0;
  for (std::uint32_t round = 0; round < context.settings().rounds; ++round) {
    Random random = context.random(round);
    hold_back(rings, round);
    struct Flight {
      SharedPair pair;
      std::uint32_t slot;
      Request request;
    };
    std::vector<Flight> flights;
    fill_guard(rings.memory().landing());
    for (const std::uint32_t hint : {0u, 1u}) {
      const SharedPair pair = rings.shared(hint);
      for (std::uint32_t i = 0; i < rings.memory().shape().slots; ++i) {
        const std::uint32_t slot = slot_of_pair(context, pair);
        const Request request = reading(space, some_lba(space, random, blocks), blocks);
        EXPECT(pair.issue(slot, request).ok());
        flights.push_back({pair, slot, request});
      }
    }
    // One thread waits for a command meanwhile.
    Status waited = status::kSuccess;
    std::thread waiter([&] { waited = flights[0].pair.wait(flights[0].slot, Deadline::in(kWaitNs)); });
    let_some_end(round, random);
    const bool stopped = rings.controller().stop(context.soon());
    waiter.join();
    EXPECT(stopped, "it did not stop in time");
    EXPECT(may_end_so(waited), status_text(waited));
    for (std::size_t i = 1; i < flights.size(); ++i) {
      const Status status = flights[i].pair.wait(flights[i].slot, Deadline::in(100'000));
      EXPECT(may_end_so(status), status_text(status));
      ended += 1;
      if (!status.ok()) continue;
      answered += 1;
      expect_pattern(space, flights[i].request.lba,
                     {flights[i].pair.landing(flights[i].slot), std::size_t{blocks} * space.block_bytes});
    }
    // What did not land by now never does.
    fill_guard(rings.memory().landing());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect_guard(rings.memory().landing(), "the landing buffers, after the controller had stopped,");
    hold_back(rings, 1);
    rings.recreate();
    for (const std::uint32_t hint : {0u, 1u}) expect_works(context, rings.shared(hint));
  }
  context.detail = std::to_string(context.settings().rounds) + " rounds, " + std::to_string(answered) +
                   " of " + std::to_string(ended) + " reads were answered with data";
}

// A block that was being written is as it was before, or as it should be.
void stops_writes(Context& context) {
  const Space& space = context.space();
  const std::uint64_t first = context.scratch();
  Rings rings(context, context.shape(0, 1, 16, 4096));
  const std::uint32_t blocks = rings.memory().shape().slot_bytes / space.block_bytes;
  const std::uint32_t slots = rings.memory().shape().slots;
  std::uint64_t kept = 0, written = 0;
  Random random = context.random();
  const auto put = [&](const SharedPair& pair, std::uint32_t slot, std::uint64_t contents) {
    const std::uint64_t lba = first + std::uint64_t{slot} * blocks;
    fill_pattern(contents, lba, space.block_bytes,
                 {pair.landing(slot), std::size_t{blocks} * space.block_bytes});
    EXPECT(pair.issue(slot, {Opcode::kWrite, space.nsid, lba, blocks}).ok());
  };
  const auto take_all = [&](const SharedPair& pair) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) slot_of_pair(context, pair);
  };
  for (std::uint32_t round = 0; round < context.settings().rounds; ++round) {
    SharedPair pair = rings.shared();
    take_all(pair);
    for (std::uint32_t slot = 0; slot < slots; ++slot) put(pair, slot, 1);
    for (std::uint32_t slot = 0; slot < slots; ++slot) expect_status(context, pair, slot);
    hold_back(rings, round);
    std::vector<Status> statuses(slots, status::kDeadlineMissed);
    for (std::uint32_t slot = 0; slot < slots; ++slot) put(pair, slot, 2);
    let_some_end(round, random);
    EXPECT(rings.controller().stop(context.soon()), "it did not stop in time");
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      statuses[slot] = pair.wait(slot, Deadline::in(100'000));
      EXPECT(may_end_so(statuses[slot]), status_text(statuses[slot]));
    }
    hold_back(rings, 1);
    rings.recreate();
    pair = rings.shared();
    take_all(pair);
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const std::uint64_t lba = first + std::uint64_t{slot} * blocks;
      start_read(pair, slot, reading(space, lba, blocks), space.block_bytes);
      expect_status(context, pair, slot);
      for (std::uint32_t block = 0; block < blocks; ++block) {
        const std::span<const std::byte> bytes(pair.landing(slot) + std::size_t{block} * space.block_bytes,
                                               space.block_bytes);
        const bool is_new = has_pattern(2, lba + block, space.block_bytes, bytes);
        EXPECT(is_new || has_pattern(1, lba + block, space.block_bytes, bytes),
               "a block is neither old nor new");
        EXPECT(is_new || !statuses[slot].ok(), "a write that succeeded is not there");
        (is_new ? written : kept) += 1;
      }
      pair.release_slot(slot);
    }
  }
  context.detail = std::to_string(context.settings().rounds) + " rounds, " + std::to_string(written) +
                   " blocks new, " + std::to_string(kept) + " as before";
}

// Calls of the client end with data or an error, and a client over new rings works.
void stops_calls(Context& context) {
  const Space& space = context.space();
  const auto session = context.open(context.shape(2, 0, 16, 16384));
  std::atomic<std::uint64_t> good{0}, failed{0};
  for (std::uint32_t round = 0; round < context.settings().rounds; ++round) {
    session->delay(round % 2 == 0 ? 200'000 : 0);
    {
      CpuQueueClient client(session->memory(), session->controller());
      std::atomic<bool> begun{false};
      std::thread stopper([&] {
        while (!begun) std::this_thread::yield();
        session->controller().stop(context.soon());
      });
      in_threads(3, [&](std::uint32_t thread) {
        Random random = context.random(10 * round + thread);
        std::vector<std::byte> bytes(std::size_t{64} * space.block_bytes);
        try {
          for (int call = 0; call < 3; ++call) {
            const std::uint64_t lba = some_lba(space, random, 64);
            begun = true;
            client.read(space.nsid, lba, bytes, Deadline::in(kWaitNs), nullptr);
            expect_pattern(space, lba, bytes);
            good.fetch_add(1);
          }
        } catch (const NvmeError& error) {
          EXPECT(may_end_so(error.status()) || error.status() == status::kNoSlot ||
                     error.status() == status::kNoQueuePair,
                 error.what());
          failed.fetch_add(1);
        }
      });
      stopper.join();
      EXPECT(session->controller().stop(context.soon()));  // Again, when all have left.
    }
    session->delay(0);
    session->controller().recreate_queues();
    session->restart();
    CpuQueueClient client(session->memory(), session->controller());
    std::vector<std::byte> bytes(std::size_t{64} * space.block_bytes);
    client.read(space.nsid, 5, bytes, context.soon(), nullptr);
    expect_pattern(space, 5, bytes);
    EXPECT(client.settle().errors == 0);
    EXPECT(session->controller().stop(context.soon()));
    session->controller().recreate_queues();
    session->restart();
  }
  context.detail = std::to_string(context.settings().rounds) + " rounds, " + std::to_string(good) +
                   " calls ended well, " + std::to_string(failed) + " with an error";
}

// Sessions end with commands in flight, and the next one finds a controller that works.
void ends_sessions(Context& context) {
  const Space& space = context.space();
  for (std::uint32_t round = 0; round < context.settings().rounds; ++round) {
    const Rings rings(context, context.shape(0, 1, 8, 4096));
    expect_works(context, rings.shared());
    hold_back(rings, round);
    const SharedPair pair = rings.shared();
    for (std::uint32_t i = 0; i < rings.memory().shape().slots; ++i) {
      EXPECT(pair.issue(slot_of_pair(context, pair), reading(space, i, 1)).ok());
    }
  }
  context.detail = std::to_string(context.settings().rounds) + " rounds";
}

}  // namespace

std::vector<Check> stop_checks() {
  return {{"stop/reads", stops_reads},
          {"stop/writes", stops_writes},
          {"stop/calls", stops_calls},
          {"stop/sessions", ends_sessions}};
}

}  // namespace bamquery::conformance
