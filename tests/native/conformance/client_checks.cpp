// The client of leased pairs: any size, any number of threads, deadlines and interrupts.
#include <atomic>
#include <vector>

#include "driver/native/errors.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

/// A session and its client.
struct Client {
  Client(const Context& context, const QueueShape& shape)
      : session(context.open(shape)), client(session->memory(), session->controller()) {}
  CpuQueueClient* operator->() { return &client; }

  /// Waits until late completions have come, and no slot is lost.
  CpuQueueClient::Counts expect_settled(const Context& context) {
    const Deadline deadline = context.soon();
    CpuQueueClient::Counts counts = client.settle();
    for (Backoff wait; counts.quarantined != 0 && !deadline.passed(); wait.pause()) counts = client.settle();
    EXPECT(counts.quarantined == 0 && counts.broken == 0,
           std::to_string(counts.quarantined) + " slots are lost");
    EXPECT(counts.late == counts.missed);
    return counts;
  }

  std::unique_ptr<Session> session;
  CpuQueueClient client;
};

void sizes(Context& context) {
  const Space& space = context.space();
  std::uint64_t calls = 0;
  for (const std::uint32_t slots : {1u, 3u, 31u}) {
    Client client(context, context.shape(2, 0, 32, 8192, slots));
    const std::uint64_t window = std::uint64_t{slots} * std::max(8192u, space.block_bytes);
    const std::uint64_t most = std::min(3 * window / space.block_bytes + 5, space.patterned);
    const std::uint64_t each = context.times(12);
    in_threads(4, [&](std::uint32_t thread) {
      Random random = context.random(thread);
      std::vector<std::byte> bytes;
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto blocks = static_cast<std::uint32_t>(1 + random() % most);
        bytes.assign(std::size_t{blocks} * space.block_bytes, std::byte{kGuard});
        const std::uint64_t lba = some_lba(space, random, blocks);
        client->read(space.nsid, lba, bytes, context.soon(), nullptr);
        expect_pattern(space, lba, bytes);
      }
    });
    calls += 4 * each;
    EXPECT(client.expect_settled(context).errors == 0);
  }
  context.detail = std::to_string(calls) + " calls";
}

void read_back(Context& context) {
  const Space& space = context.space();
  const std::uint64_t first = context.scratch();
  constexpr std::uint32_t kThreads = 4;
  const std::uint64_t share = (2 << 20) / space.block_bytes / kThreads;  // Blocks of each thread.
  std::vector<std::vector<std::uint64_t>> versions(kThreads, std::vector<std::uint64_t>(share));
  {
    Client client(context, context.shape(2, 0, 16, 16384));
    in_threads(kThreads, [&](std::uint32_t thread) {
      Random random = context.random(thread);
      std::vector<std::byte> bytes;
      const std::uint64_t writes = context.times(20);
      for (std::uint64_t i = 0; i <= writes; ++i) {
        const std::uint64_t version = 10 + i % 200;
        const std::uint64_t at = i == 0 ? 0 : random() % share;
        const std::uint64_t blocks = i == 0 ? share : 1 + random() % std::min<std::uint64_t>(share - at, 70);
        bytes.resize(blocks * space.block_bytes);
        const std::uint64_t lba = first + thread * share + at;
        fill_pattern(version, lba, space.block_bytes, bytes);
        client->write(space.nsid, lba, bytes, context.soon(), nullptr);
        for (std::uint64_t block = at; block < at + blocks; ++block) versions[thread][block] = version;
      }
      client->flush(space.nsid, context.soon(), nullptr);
    });
    EXPECT(client.expect_settled(context).errors == 0);
  }
  Client fresh(context, context.shape(1, 0, 64, 4096));
  std::vector<std::byte> bytes(share * space.block_bytes);
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    fresh->read(space.nsid, first + thread * share, bytes, context.soon(), nullptr);
    for (std::uint64_t block = 0; block < share; ++block) {
      expect_pattern(versions[thread][block], first + thread * share + block, space.block_bytes,
                     std::span(bytes).subspan(block * space.block_bytes, space.block_bytes));
    }
  }
  context.detail = std::to_string(kThreads * share) + " blocks";
}

// A call ends at its deadline, and what comes late gives its slot back.
void deadlines(Context& context) {
  const Space& space = context.space();
  Client client(context, context.shape(1, 0, 16, 4096));
  const bool delayed = client.session->delay(3'000'000);
  const std::uint32_t blocks = 16 * 4096 / space.block_bytes;
  std::vector<std::byte> bytes(std::size_t{blocks} * space.block_bytes);
  std::uint64_t missed = 0;
  const std::uint64_t calls = context.times(12);
  for (std::uint64_t i = 0; i < calls; ++i) {
    fill_guard(bytes);
    try {
      // One that has passed, then one that passes while commands are in flight.
      client->read(space.nsid, i, bytes, i % 2 == 0 ? Deadline{0} : Deadline::in(20'000), nullptr);
      expect_pattern(space, i, bytes);
    } catch (const NvmeError& error) {
      EXPECT(error.status() == status::kDeadlineMissed || error.status() == status::kNoSlot ||
                 error.status() == status::kNoQueuePair,
             error.what());
      ++missed;
    }
    client.expect_settled(context);
  }
  EXPECT(!delayed || missed == calls, "a command came before its time");
  client.session->delay(0);
  client->read(space.nsid, 7, bytes, context.soon(), nullptr);
  expect_pattern(space, 7, bytes);
  context.detail = std::to_string(missed) + " of " + std::to_string(calls) + " calls missed theirs, " +
                   std::to_string(client.expect_settled(context).late) + " commands came late";
}

void interrupts(Context& context) {
  const Space& space = context.space();
  Client client(context, context.shape(1, 0, 8, 4096));
  std::vector<std::byte> bytes(4096);
  const bool delayed = client.session->delay(150'000'000);
  if (!delayed) throw Skipped("the controller cannot be made slow");
  std::atomic<std::uint32_t> asked{0};
  std::atomic<std::uint32_t> aborted{0};
  // One waits for its command, the other for a pair.
  in_threads(2, [&](std::uint32_t) {
    std::vector<std::byte> mine(4096);
    try {
      client->read(space.nsid, 0, mine, context.soon(), [&] {
        asked.fetch_add(1);
        return true;
      });
    } catch (const NvmeError& error) {
      EXPECT(error.status() == status::kAbortRequested && error.nsid() == space.nsid, error.what());
      aborted.fetch_add(1);
    }
  });
  EXPECT(aborted == 2 && asked >= 2);
  client.session->delay(0);
  client.expect_settled(context);
  // Who says no goes on.
  client->read(space.nsid, 3, bytes, context.soon(), [] { return false; });
  expect_pattern(space, 3, bytes);
}

void whole_blocks(Context& context) {
  const Space& space = context.space();
  Client client(context, context.shape(1, 0, 4, 4096));
  std::vector<std::byte> bytes(space.block_bytes + 1);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, bytes.size()}) {
    bool refused = false;
    try {
      client->read(space.nsid, 0, std::span(bytes).first(size), context.soon(), nullptr);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    EXPECT(refused);
  }
}

}  // namespace

std::vector<Check> client_checks() {
  return {{"client/sizes", sizes},
          {"client/read-back", read_back},
          {"client/deadlines", deadlines},
          {"client/interrupts", interrupts},
          {"client/whole-blocks", whole_blocks}};
}

}  // namespace bamquery::conformance
