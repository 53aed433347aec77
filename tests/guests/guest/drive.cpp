// What the driver does with one drive: `drive NUMBER ADDRESS`; the number is what its pattern has.
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "check.hpp"
#include "driven.hpp"
#include "driver/native/status_text.hpp"

namespace {

using namespace guests;

struct Checks {
  std::uint64_t number;
  std::string address;
  std::shared_ptr<NvmeDrive> drive;

  std::uint32_t block() const { return drive->namespaces().at(0).block_bytes; }

  void opened() const {
    const DriveLimits& limits = drive->limits();
    check(drive->identity().serial == "guest" + std::to_string(number) && drive->namespaces().size() == 1 &&
              drive->namespaces()[0].refusal.empty() && limits.queue_depth == 2048 &&
              limits.transfer_bytes == 524288,
          "opened",
          "%s: %s, firmware %s, NVMe %x, by %s; %u queue pairs of %u, transfers of %u; ready after %.1f ms",
          address.c_str(), drive->identity().model.c_str(), drive->identity().firmware.c_str(),
          drive->version(), drive->interface().c_str(), limits.queue_pairs, limits.queue_depth,
          limits.transfer_bytes, drive->statistics().bring_up_seconds * 1e3);
  }

  // Reads, and compares every byte; then writes, flushes, and reads that.
  void shapes(DoorbellKind kind, const char* name) {
    std::size_t wrong = 0, count = 0;
    std::uint64_t writes = 0;
    for (std::uint32_t depth = 2; depth <= drive->limits().queue_depth; depth *= 2) {
      for (const std::uint32_t slot : {4096u, depth <= 64 ? drive->limits().transfer_bytes : 8192u}) {
        QueueMemory memory(shape_for(*drive, depth, slot));
        NvmeController controller(drive, memory, kind);
        CpuQueueClient client(memory, controller);
        std::vector<std::byte> data(std::size_t{slot} * 3 + 5 * block());
        client.read(1, depth, data, patience(), {});
        wrong += differences(number, depth, block(), data);
        // Written one block further on, and back.
        client.write(1, depth + 1, data, patience(), {});
        client.flush(1, patience(), {});
        std::vector<std::byte> again(data.size());
        client.read(1, depth + 1, again, patience(), {});
        wrong += again == data ? 0 : 1;
        restore(client, depth, data.size() / block() + 1);
        writes += controller.doorbell_writes().value_or(0);
        ++count;
      }
    }
    check(wrong == 0, name, "%zu shapes of 2 to %u entries, commands of 4 KiB to %u: %zu words are not right",
          count, drive->limits().queue_depth, drive->limits().transfer_bytes, wrong);
  }

  void restore(CpuQueueClient& client, std::uint64_t lba, std::uint64_t blocks) const {
    std::vector<std::byte> data(blocks * block());
    const std::uint64_t words = block() / 8;
    for (std::uint64_t i = 0; i < data.size() / 8; ++i) {
      const std::uint64_t word = pattern(number, lba + i / words, i % words);
      std::memcpy(data.data() + 8 * i, &word, sizeof word);
    }
    client.write(1, lba, data, patience(), {});
  }

  void statuses() {
    Raw raw(drive);
    const std::uint64_t blocks = drive->namespaces()[0].blocks;
    const auto gives = [&](const char* name, const SubmissionEntry& entry, unsigned wanted) {
      const unsigned found = raw.execute(entry);
      check(found == wanted && raw.untouched(), name, "status 0x%x: %s", found,
            status_text(Status{static_cast<std::uint16_t>(found)}).c_str());
    };
    gives("status-lba-range", raw.entry(2, blocks, 1), 0x080);
    gives("status-transfer", raw.entry(2, 0, drive->limits().transfer_bytes / block() + 1), 0x002);
    gives("status-opcode", raw.entry(0x7f, 0, 1), 0x001);
    SubmissionEntry entry = raw.entry(2, 0, 1);
    entry.nsid = 0x1000;
    gives("status-namespace", entry, 0x00b);
    entry = raw.entry(2, 0, 3 * 4096 / block());
    entry.prp1 += 4096 - block();
    entry.prp2 = raw.memory.bus(raw.memory.landing().data()) + 4096 + 8;
    gives("status-prp-offset", entry, 0x013);
    const unsigned twice = status_of([&] {
      drive->create_queues(raw.memory.queue_id(0), 64, raw.memory.bus(raw.memory.submissions(0)),
                           raw.memory.bus(raw.memory.completions(0)));
    });
    check(twice == 0x101, "status-queue-number", "status 0x%x", twice);
  }

  // QEMU answers success; the data went nowhere, and the kernel says so.
  void unmapped() {
    Raw raw(drive);
    SubmissionEntry entry = raw.entry(2, 0, 4096 / block());
    entry.prp1 = raw.memory.bus(raw.memory.landing().data()) + raw.memory.landing().size();  // the guard page
    const unsigned found = raw.execute(entry);
    check(found != 0xffff && raw.untouched(), "unmapped",
          "a read beyond the landing buffers: status 0x%x, they are untouched", found);
    // Landing buffers of a drive for reading are not readable by it: what would be written is not theirs.
    // Rings are not writable.
    entry.prp1 = raw.memory.bus(raw.memory.submissions(0));
    const SubmissionEntry before = raw.memory.submissions(0)[5];
    const unsigned rings = raw.execute(entry);
    check(rings != 0xffff && std::memcmp(&before, &raw.memory.submissions(0)[5], sizeof before) == 0,
          "rings-not-writable", "a read into the rings: status 0x%x", rings);
  }

  // Whatever the drive still had to do, nothing of it lands once stop() or reset() is over.
  void resets() {
    std::mt19937 random(5);
    std::size_t landed = 0, finished = 0;
    Raw raw(drive);
    const std::uint64_t begin = now_ns();
    constexpr int kRounds = 100;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::byte> space(raw.memory.pool_bytes() + 128);
      void* at = space.data();
      std::size_t size = space.size();
      std::align(128, raw.memory.pool_bytes(), at, size);
      const QueuePoolView pool = raw.memory.make_pool({static_cast<std::byte*>(at), raw.memory.pool_bytes()});
      for (std::uint32_t hint = 0; hint < 60; ++hint) {
        // The leased pair is nobody's here, so it is shared, too.
        const QueuePairView& view = pool.pairs[hint % 2];
        const QueuePair<Scope::kDevice> pair(view, view.flags);
        std::uint32_t slot = 0;
        if (pair.acquire_slot(Deadline{0}, slot).ok()) {
          pair.issue(slot, {Opcode::kRead, 1, random() % 60000 / (block() / 512), 4096 / block()});
        }
      }
      const Deadline moment = Deadline::in(random() % 1'000'000);
      while (!moment.passed()) {
      }
      const bool stopped = round % 2 == 0 ? raw.controller.stop(patience()) : drive->reset(patience());
      finished += stopped ? 1 : 0;
      std::ranges::fill(raw.memory.landing(), std::byte{0x77});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      landed += raw.untouched() ? 0 : 1;
      finished += raw.controller.stop(patience()) ? 1 : 0;
      raw.controller.recreate_queues();
    }
    CpuQueueClient client(raw.memory, raw.controller);
    std::vector<std::byte> data(65536);
    client.read(1, 0, data, patience(), {});
    check(landed == 0 && finished == 2 * kRounds && differences(number, 0, block(), data) == 0, "resets",
          "%d with reads in flight, by deletion of queues and by CC.EN in turns: bytes landed after %zu of "
          "them, %.1f ms each",
          kRounds, landed, static_cast<double>(now_ns() - begin) * 1e-6 / kRounds);
  }

  // Random reads of 4 KiB, 63 at a time.
  void rates(DoorbellKind kind, const char* name) {
    QueueShape shape = shape_for(*drive, 64, 4096);
    QueueMemory memory(shape);
    NvmeController controller(drive, memory, kind);
    std::vector<std::byte> space(memory.pool_bytes() + 128);
    void* at = space.data();
    std::size_t size = space.size();
    std::align(128, memory.pool_bytes(), at, size);
    const QueuePoolView pool = memory.make_pool({static_cast<std::byte*>(at), memory.pool_bytes()});
    const QueuePairView& view = pool.pairs[0];
    const QueuePair<Scope::kDevice> pair(view, view.flags);
    std::mt19937 random(9);
    std::uint64_t done = 0, wrong = 0;
    const std::uint64_t begin = now_ns();
    const Deadline end = Deadline::in(1'500'000'000);
    std::vector<std::uint32_t> pending;
    while (!end.passed() || !pending.empty()) {
      std::uint32_t slot = 0;
      while (!end.passed() && pair.acquire_slot(Deadline{0}, slot).ok()) {
        pair.issue(slot, {Opcode::kRead, 1, random() % 16000 * (4096 / block()), 4096 / block()});
        pending.push_back(slot);
      }
      controller.service(0);
      pair.sweep();
      std::erase_if(pending, [&](std::uint32_t each) {
        Status status{};
        if (!pair.try_wait(each, status)) return false;
        wrong += status.ok() ? 0 : 1;
        ++done;
        pair.release_slot(each);
        return true;
      });
    }
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    const std::uint64_t tails = pair.flags().header().doorbells;
    const double each =
        static_cast<double>(controller.doorbell_writes().value_or(tails)) / static_cast<double>(done);
    const bool few = kind == DoorbellKind::kRegisters || each <= 0.1;
    check(wrong == 0 && done > 100 && few, name, "%.0f reads/s, %.3f doorbell writes a command%s (%s)",
          static_cast<double>(done) / seconds, each, controller.doorbell_writes() ? "" : ", of tails alone",
          controller.doorbell_text().c_str());
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const bool only_rates = argc == 4 && std::string_view(argv[3]) == "rates";
  Checks checks{std::strtoull(argv[1], nullptr, 10), argv[2], nullptr};
  try {
    checks.drive = open_drive(checks.address, true);
    if (only_rates) {
      checks.rates(DoorbellKind::kRegisters, "registers-rate");
      checks.rates(DoorbellKind::kForwarded, "forwarded-rate");
      checks.rates(DoorbellKind::kShadow, "shadow-rate");
      return 0;
    }
    checks.opened();
    checks.shapes(DoorbellKind::kRegisters, "registers");
    checks.statuses();
    checks.unmapped();
    checks.resets();
    checks.rates(DoorbellKind::kRegisters, "registers-rate");
    checks.shapes(DoorbellKind::kForwarded, "forwarded");
    checks.rates(DoorbellKind::kForwarded, "forwarded-rate");
    checks.shapes(DoorbellKind::kShadow, "shadow");
    checks.rates(DoorbellKind::kShadow, "shadow-rate");
    const DriveStatistics statistics = checks.drive->statistics();
    check(statistics.admin.missed == 0 && statistics.admin.strays == 0 && statistics.resets == 50,
          "statistics",
          "%llu admin commands, %llu errors, %llu missed, %llu strays, %llu events, %llu resets, ready again "
          "after %.1f ms",
          static_cast<unsigned long long>(statistics.admin.commands),
          static_cast<unsigned long long>(statistics.admin.errors),
          static_cast<unsigned long long>(statistics.admin.missed),
          static_cast<unsigned long long>(statistics.admin.strays),
          static_cast<unsigned long long>(statistics.admin.events),
          static_cast<unsigned long long>(statistics.resets), statistics.bring_up_seconds * 1e3);
  } catch (const std::exception& error) {
    check(false, "exception", "%s", error.what());
  }
  return 0;
}
