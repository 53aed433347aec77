// Clients that read and write what they alone own, through the real rings, while commands fail, come late,
// out of order or not at all, and queue pairs break. Every byte read is compared, and every command accounted
// for.

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "tests/native/controller/controller_test.hpp"

namespace bamquery::test {
namespace {

constexpr std::uint32_t kClients = 4;
constexpr std::uint32_t kNamespaces = 3;  // memory, a mapped file, a direct file
constexpr std::uint32_t kClientBlocks = 512;
constexpr std::uint32_t kMostBlocks = 24;  // more than two pages: a PRP list
constexpr std::uint64_t kPatienceNs = 100'000'000;

// The rules of a round, by place.
enum Rule : std::size_t {
  kBadRead,
  kBadWrite,
  kBadFlush,
  kTorn,
  kReordered,
  kDelayed,
  kLate,
  kLost,
  kBroken,
  kRules
};

std::vector<FaultRule> rules(bool breaks) {
  std::vector<FaultRule> made(kRules);
  made[kBadRead] = {.kind = FaultKind::kError,
                    .nsid = 1,
                    .opcode = Opcode::kRead,
                    .blocks = 900,
                    .probability = 0.05,
                    .status = status::kUnrecoveredRead};
  made[kBadWrite] = {.kind = FaultKind::kError,
                     .nsid = 2,
                     .opcode = Opcode::kWrite,
                     .first_lba = 300,
                     .probability = 0.05,
                     .status = status::kWriteFault};
  made[kBadFlush] = {.kind = FaultKind::kError,
                     .opcode = Opcode::kFlush,
                     .probability = 0.2,
                     .status = status::kInternalError};
  made[kTorn] = {
      .kind = FaultKind::kTear, .probability = 0.05, .status = status::kAccessDenied, .bytes = 1000};
  made[kReordered] = {.kind = FaultKind::kReorder, .probability = 0.1, .window = 6};
  made[kDelayed] = {.kind = FaultKind::kDelay, .probability = 0.1, .delay_ns = 100'000};
  made[kLate] = {.kind = FaultKind::kDelay, .probability = 0.005, .most = 12, .delay_ns = 2 * kPatienceNs};
  made[kLost] = {.kind = FaultKind::kLose, .probability = 0.005, .most = 6};
  made[kBroken] = {.kind = FaultKind::kWrongHead, .probability = breaks ? 0.002 : 0, .most = 2};
  return made;
}

struct BlockState {
  std::vector<std::uint32_t> versions{0};  // each 8 bytes are of any of these; mostly it is one
  bool busy = false;                       // a command is in flight
  bool retired = false;                    // a command may still come: left alone until all have stopped
};

struct Tally {
  std::array<std::uint64_t, kRules> seen{};  // answers that a rule must have caused
  std::uint64_t issued = 0;
  std::uint64_t broken = 0;
};

struct World {
  explicit World(const std::string& folder, std::uint64_t first_seed, int controller_threads)
      : seed(first_seed),
        memory(shape(kClients, 32, 16384)),
        controller(memory, threads(controller_threads)) {
    const std::size_t bytes = std::size_t{kClients} * kClientBlocks * kBlock;
    const auto file = [&](const char* name) { return make_file(folder + name, bytes, 0); };
    CHECK(controller.add_namespace(Namespace::memory(bytes, kBlock)) == 1);
    CHECK(controller.add_namespace(Namespace::mapped_file(file("/mapped"), kBlock, true)) == 2);
    CHECK(controller.add_namespace(Namespace::direct_file(file("/direct"), kBlock, true)) == 3);
    blocks.resize(std::size_t{kNamespaces} * kClients * kClientBlocks);
  }

  BlockState& block(std::uint32_t nsid, std::uint64_t lba) {
    return blocks[(nsid - 1) * kClients * kClientBlocks + lba];
  }
  std::uint64_t word(std::uint32_t version, std::uint32_t nsid, std::uint64_t lba,
                     std::uint32_t index) const {
    if (version == 0) return 0;
    return content_word(content_key(seed + version, nsid << 20 | lba), index);
  }

  std::uint64_t seed;
  QueueMemory memory;
  SoftwareController controller;
  std::vector<BlockState> blocks;
};

class Client {
 public:
  Client(World& world, const Pool& pool, std::uint32_t number, std::uint64_t seed)
      : world_(world), pool_(pool), number_(number), random_(seed * kClients + number) {}

  void run(std::uint32_t leases, std::uint32_t commands) {
    for (std::uint32_t i = 0; i < leases; ++i) {
      Lease lease(pool_, world_.controller);
      CHECK(lease.begun().ok());
      const ServicedPair<Scope::kBlock>& pair = lease.pair();
      const std::size_t most = 1 + random_() % 12;
      for (std::uint32_t n = 0; n < commands && !pair.pair().broken(); ++n) {
        while (pending_.size() >= most) finish(pair);
        issue(pair);
      }
      while (!pending_.empty()) finish(pair);
      const Status ended = lease.end(in_seconds(60));
      CHECK(ended.ok() || ended == status::kQueueBroken);
    }
  }

  // Reads all that is this client's, alone.
  void verify() {
    Lease lease(pool_, world_.controller);
    CHECK(lease.begun().ok());
    for (std::uint32_t nsid = 1; nsid <= kNamespaces; ++nsid) {
      for (std::uint32_t at = 0; at < kClientBlocks; at += 16) {
        std::uint32_t slot = 0;
        CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
        const Request request{Opcode::kRead, nsid, number_ * kClientBlocks + at, 16};
        CHECK(lease.pair().issue(slot, request).ok());
        CHECK(lease.pair().wait(slot, in_seconds(60)).ok());
        compare(request, lease.pair().landing(slot));
        lease.pair().release_slot(slot);
        ++tally.issued;
      }
    }
    CHECK(lease.end(in_seconds(60)).ok());
  }

  Tally tally;

 private:
  struct Pending {
    std::uint32_t slot;
    Request request;
    std::uint32_t version;
    Deadline deadline;
  };

  void issue(const ServicedPair<Scope::kBlock>& pair) {
    Request request{};
    if (!choose(request)) return;
    std::uint32_t slot = 0;
    const Status acquired = pair.acquire_slot(in_seconds(60), slot);
    if (acquired == status::kQueueBroken) return;
    CHECK(acquired.ok());
    const std::uint32_t version = ++version_;
    for_each(request, [&](BlockState& block, std::uint64_t lba) {
      block.busy = true;
      auto* const words = reinterpret_cast<std::uint64_t*>(pair.landing(slot) + (lba - request.lba) * kBlock);
      for (std::uint32_t i = 0; i < kBlock / 8; ++i) {
        words[i] = request.opcode == Opcode::kWrite ? world_.word(version, request.nsid, lba, i) : ~0ull;
      }
    });
    const Status issued = pair.issue(slot, request);
    if (!issued.ok()) {
      CHECK(issued == status::kQueueBroken);
      free(request);
      pair.release_slot(slot);
      return;
    }
    ++tally.issued;
    pending_.push_back({slot, request, version, Deadline::in(kPatienceNs)});
  }

  // Blocks that no command of ours is at; false if none were found.
  bool choose(Request& request) {
    const std::uint64_t dice = random_() % 100;
    request.opcode = dice < 4 ? Opcode::kFlush : dice < 40 ? Opcode::kWrite : Opcode::kRead;
    request.nsid = static_cast<std::uint32_t>(1 + random_() % kNamespaces);
    if (request.opcode == Opcode::kFlush) return true;
    for (int tries = 0; tries < 20; ++tries) {
      request.blocks = static_cast<std::uint32_t>(1 + random_() % kMostBlocks);
      request.lba = number_ * kClientBlocks + random_() % (kClientBlocks - request.blocks + 1);
      bool free = true;
      for_each(request,
               [&](const BlockState& block, std::uint64_t) { free &= !block.busy && !block.retired; });
      if (free) return true;
    }
    return false;
  }

  void finish(const ServicedPair<Scope::kBlock>& pair) {
    const Pending command = pending_.front();
    pending_.pop_front();
    const Request& request = command.request;
    const bool writes = request.opcode == Opcode::kWrite;
    const Status status = pair.wait(command.slot, command.deadline);
    if (status.ok() && request.opcode == Opcode::kRead) compare(request, pair.landing(command.slot));
    if (!status.ok()) explain(request, status);
    for_each(request, [&](BlockState& block, std::uint64_t) {
      // A late command is carried out some time: nobody can say what comes of others beside it.
      block.retired |= loses_slot(status);
      if (!writes) return;
      if (status.ok()) block.versions.clear();
      block.versions.push_back(command.version);
    });
    free(request);
    if (!loses_slot(status)) pair.release_slot(command.slot);
  }

  // Every status has a rule that fits the namespace, the blocks and the opcode.
  void explain(const Request& request, Status status) {
    if (status == status::kUnrecoveredRead) {
      CHECK(request.opcode == Opcode::kRead && request.nsid == 1 && request.lba < 900);
      ++tally.seen[kBadRead];
    } else if (status == status::kWriteFault) {
      CHECK(request.opcode == Opcode::kWrite && request.nsid == 2 && request.lba + request.blocks > 300);
      ++tally.seen[kBadWrite];
    } else if (status == status::kInternalError) {
      CHECK(request.opcode == Opcode::kFlush);
      ++tally.seen[kBadFlush];
    } else if (status == status::kAccessDenied) {
      CHECK(request.opcode == Opcode::kWrite);
      ++tally.seen[kTorn];
    } else {
      CHECK(loses_slot(status));
      tally.broken += status == status::kQueueBroken ? 1 : 0;
    }
  }

  void compare(const Request& request, const std::byte* landing) {
    for_each(request, [&](const BlockState& block, std::uint64_t lba) {
      const auto* const words =
          reinterpret_cast<const std::uint64_t*>(landing + (lba - request.lba) * kBlock);
      for (std::uint32_t i = 0; i < kBlock / 8; ++i) {
        CHECK(std::ranges::any_of(block.versions, [&](std::uint32_t version) {
          return words[i] == world_.word(version, request.nsid, lba, i);
        }));
      }
    });
  }

  void free(const Request& request) {
    for_each(request, [](BlockState& block, std::uint64_t) { block.busy = false; });
  }

  template <typename Work>
  void for_each(const Request& request, Work work) {
    for (std::uint64_t lba = request.lba; lba < request.lba + request.blocks; ++lba) {
      work(world_.block(request.nsid, lba), lba);
    }
  }

  World& world_;
  const Pool& pool_;
  std::uint32_t number_;
  std::mt19937_64 random_;
  std::uint32_t version_ = 0;
  std::deque<Pending> pending_;
};

struct Flags {
  std::uint64_t missed = 0, late = 0, quarantined = 0, broken = 0;
};

// What the pairs' flags say at rest, after taking completions that have come.
Flags settle(World& world, const Pool& pool) {
  Flags found;
  for (std::uint32_t number = 0; number < pool.view().leased_count; ++number) {
    const QueuePairView& view = pool.view().pairs[number];
    const QueuePair<Scope::kBlock> pair(view, view.flags);
    world.controller.service(number);
    pair.sweep();
    const QueueHeader& header = pair.flags().header();
    found.missed += header.missed;
    found.late += header.late;
    found.broken += header.broken;
    for (std::uint32_t slot = 0; slot < view.slots; ++slot) {
      const CommandWord word{pair.flags().command(slot)};
      found.quarantined += word.state() == CommandState::kQuarantined ? 1 : 0;
    }
  }
  return found;
}

void in_parallel(std::vector<Client>& clients, const std::function<void(Client&)>& work) {
  std::vector<std::thread> threads;
  for (Client& client : clients) threads.emplace_back([&] { work(client); });
  for (std::thread& thread : threads) thread.join();
}

// Without broken queue pairs, all is accounted for exactly.
void account(World& world, const Pool& pool, const std::vector<Client>& clients) {
  const auto fired = world.controller.statistics().fired;
  Flags flags;
  await([&] {
    flags = settle(world, pool);
    return flags.quarantined == fired[kLost];
  });
  CHECK(flags.missed == flags.late + flags.quarantined && flags.broken == 0);
  Tally total;
  for (const Client& client : clients) {
    total.issued += client.tally.issued;
    for (std::size_t i = 0; i < kRules; ++i) total.seen[i] += client.tally.seen[i];
  }
  const ControllerCounts counts = world.controller.statistics().counts;
  CHECK(counts.reads + counts.writes + counts.flushes == total.issued);
  CHECK(counts.refused == 0 && counts.lost == fired[kLost]);
  std::uint64_t unseen = 0;  // answers to those who had given up
  for (const Rule rule : {kBadRead, kBadWrite, kBadFlush, kTorn}) {
    CHECK(total.seen[rule] <= fired[rule] && fired[rule] > 0);
    unseen += fired[rule] - total.seen[rule];
  }
  CHECK(unseen <= flags.late);
}

void round(const std::string& folder, std::uint64_t seed) {
  World world(folder, seed, static_cast<int>(seed % 3));
  world.controller.start();
  const auto activity = world.controller.activity();
  auto pool = std::make_unique<Pool>(world.memory);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < kClients; ++i) clients.emplace_back(world, *pool, i, seed);

  world.controller.set_faults(rules(false), seed);
  in_parallel(clients, [](Client& client) { client.run(5, 100); });
  account(world, *pool, clients);

  world.controller.set_faults(rules(true), seed + 1);
  in_parallel(clients, [](Client& client) { client.run(3, 100); });

  // Whatever is still held comes to its end; then all works again, and holds what it should.
  CHECK(world.controller.stop(in_seconds(60)));
  world.controller.set_faults({}, 0);
  world.controller.recreate_queues();
  *pool = Pool(world.memory);
  world.controller.start();
  in_parallel(clients, [](Client& client) { client.verify(); });
  CHECK(settle(world, *pool).missed == 0);
}

}  // namespace

void stress(const std::string& folder, std::uint64_t seed, double seconds) {
  const Deadline end = Deadline::in(static_cast<std::uint64_t>(seconds * 1e9));
  std::uint64_t rounds = 0;
  do {
    round(folder, seed + rounds);
    ++rounds;
  } while (!end.passed());
  std::printf("all of %llu rounds passed\n", static_cast<unsigned long long>(rounds));
}

}  // namespace bamquery::test
