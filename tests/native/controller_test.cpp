// The software controller: statuses, faults, namespaces that come and go, and its end.
// Usage: controller_test FOLDER [SEED SECONDS, of the stress]

#include "controller_test.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "drive_profile.hpp"
#include "held_commands.hpp"

namespace bamquery::test {
namespace {

// Drives one queue pair by hand, entry by entry, as no well-behaved submitter would.
class RawQueue {
 public:
  explicit RawQueue(QueueShape wanted, int controller_threads = 0)
      : memory(wanted), controller(memory, threads(controller_threads)) {
    nsid = controller.add_namespace(Namespace::memory(kBytes, kBlock));
    controller.start();
  }

  std::byte* landing(std::uint32_t slot = 0) const {
    return memory.landing().data() + slot * memory.shape().slot_bytes;
  }
  std::span<std::byte> contents() const { return controller.find_namespace(nsid)->bytes(); }

  SubmissionEntry entry(Opcode opcode, std::uint64_t lba, std::uint32_t blocks) const {
    SubmissionEntry made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    made.command_id = 77;
    made.nsid = nsid;
    made.prp1 = reinterpret_cast<std::uint64_t>(landing());
    if (blocks * kBlock > 2 * kPrpPageBytes) {
      made.prp2 = reinterpret_cast<std::uint64_t>(memory.prp_lists().data());
    } else {
      made.prp2 = made.prp1 + kPrpPageBytes;
    }
    made.lba = lba;
    made.block_count = static_cast<std::uint16_t>(blocks - 1);
    return made;
  }

  void submit(const SubmissionEntry& made) {
    memory.submissions(0)[tail_] = made;
    tail_ = (tail_ + 1) % memory.shape().depth;
    ring(tail_);
  }
  void ring(std::uint32_t tail) {
    AtomicRef<std::uint32_t, Scope::kSystem>(*memory.tail_doorbell(0)).store(tail, kRelease);
  }

  // The next completion, if it is there.
  std::optional<Outcome> completion(bool consume = true) {
    CompletionEntry& place = memory.completions(0)[head_ % memory.shape().depth];
    const Outcome outcome{AtomicRef<std::uint64_t, Scope::kSystem>(place.outcome).load(kAcquire)};
    if (outcome.phase() != (head_ / memory.shape().depth % 2 == 0)) return std::nullopt;
    ++head_;
    if (consume) give_back();
    return outcome;
  }
  void give_back() {
    AtomicRef<std::uint32_t, Scope::kSystem>(*memory.head_doorbell(0))
        .store(head_ % memory.shape().depth, kRelease);
  }

  Outcome outcome() {
    std::optional<Outcome> found;
    await([&] {
      controller.service(0, 1'000'000);
      return (found = completion()).has_value();
    });
    return *found;
  }
  Status execute(const SubmissionEntry& made) {
    submit(made);
    const Outcome found = outcome();
    CHECK(found.command_id() == made.command_id && found.submission_queue() == 1);
    CHECK(found.submission_head() == tail_);
    return found.status();
  }
  Status execute(Opcode opcode, std::uint64_t lba, std::uint32_t blocks) {
    return execute(entry(opcode, lba, blocks));
  }

  static constexpr std::uint64_t kBytes = 1 << 20;
  static constexpr std::uint64_t kBlocks = kBytes / kBlock;

  QueueMemory memory;
  SoftwareController controller;
  std::uint32_t nsid = 0;

 private:
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;
};

FaultRule rule(FaultKind kind) {
  FaultRule made;
  made.kind = kind;
  return made;
}

void reads_and_writes() {
  RawQueue queue(shape(1, 4, 65536));
  for (std::size_t i = 0; i < queue.contents().size(); ++i) {
    queue.contents()[i] = static_cast<std::byte>(mix_bits(i));
  }
  // From one block to a list of pages, at all offsets of the ring.
  for (const std::uint32_t blocks : {1u, 7u, 8u, 9u, 16u, 17u, 128u}) {
    for (std::uint64_t lba = 0; lba < 5; ++lba) {
      std::memset(queue.landing(), 0xee, 65536);
      CHECK(queue.execute(Opcode::kRead, lba, blocks).ok());
      CHECK(std::memcmp(queue.landing(), queue.contents().data() + lba * kBlock, blocks * kBlock) == 0);
      if (blocks < 128) CHECK(queue.landing()[blocks * kBlock] == std::byte{0xee});
      std::memset(queue.landing(), static_cast<int>(lba + 1), blocks * kBlock);
      CHECK(queue.execute(Opcode::kWrite, lba + 200, blocks).ok());
      CHECK(queue.contents()[(lba + 200) * kBlock] == static_cast<std::byte>(lba + 1));
      CHECK(queue.contents()[(lba + 200 + blocks) * kBlock - 1] == static_cast<std::byte>(lba + 1));
    }
  }
  CHECK(queue.execute(Opcode::kFlush, 0, 1).ok());
  const ControllerCounts counts = queue.controller.statistics().counts;
  CHECK(counts.reads == 35 && counts.writes == 35 && counts.flushes == 1 && counts.errors == 0);
  CHECK(counts.read_bytes == counts.write_bytes && counts.read_bytes == 5 * 186 * kBlock);
}

void refuses_what_is_not_valid() {
  RawQueue queue(shape(1, 4, 65536));
  const auto refused = [&](Status expected, auto change) {
    SubmissionEntry made = queue.entry(Opcode::kRead, 0, 128);
    change(made);
    const Status status = queue.execute(made);
    if (!(status == expected)) std::fprintf(stderr, "%x, not %x\n", status.code, expected.code);
    CHECK(status == expected);
  };
  refused(status::kSuccess, [](SubmissionEntry&) {});
  refused(status::kInvalidOpcode, [](SubmissionEntry& made) { made.opcode = 9; });
  refused(status::kInvalidField, [](SubmissionEntry& made) { made.flags = 1; });     // fused
  refused(status::kInvalidField, [](SubmissionEntry& made) { made.flags = 0x40; });  // SGL
  refused(status::kInvalidNamespace, [](SubmissionEntry& made) { made.nsid = 0; });
  refused(status::kInvalidNamespace, [](SubmissionEntry& made) { made.nsid = 2; });
  refused(status::kInvalidNamespace, [](SubmissionEntry& made) { made.nsid = ~0u; });
  refused(status::kLbaOutOfRange, [](SubmissionEntry& made) { made.lba = RawQueue::kBlocks - 127; });
  refused(status::kLbaOutOfRange, [](SubmissionEntry& made) { made.lba = RawQueue::kBlocks; });
  refused(status::kLbaOutOfRange, [](SubmissionEntry& made) { made.lba = ~0ull; });
  refused(status::kLbaOutOfRange, [](SubmissionEntry& made) { made.lba = 1ull << 55; });  // × 512 wraps
  refused(status::kLbaOutOfRange, [](SubmissionEntry& made) { made.block_count = 65535; });
  // PRPs: offsets, and every page of every kind inside the landing area.
  const auto landing = reinterpret_cast<std::uint64_t>(queue.landing());
  const std::uint64_t end = landing + queue.memory.landing().size();
  const auto lists = reinterpret_cast<std::uint64_t>(queue.memory.prp_lists().data());
  refused(status::kPrpOffsetInvalid, [](SubmissionEntry& made) { made.prp1 += 2; });
  refused(status::kPrpOffsetInvalid, [](SubmissionEntry& made) { made.prp2 += 4; });
  refused(status::kDataTransferError, [](SubmissionEntry& made) { made.prp1 = 0; });
  refused(status::kDataTransferError, [&](SubmissionEntry& made) { made.prp1 = landing - 4096; });
  refused(status::kDataTransferError, [&](SubmissionEntry& made) { made.prp1 = end - 4092 + 4096; });
  refused(status::kDataTransferError, [&](SubmissionEntry& made) { made.prp1 = ~0ull - 3; });
  refused(status::kDataTransferError, [](SubmissionEntry& made) { made.prp2 = 0; });
  refused(status::kDataTransferError, [&](SubmissionEntry& made) { made.prp2 = landing; });
  refused(status::kDataTransferError, [&](SubmissionEntry& made) { made.prp2 = lists - 8; });
  const auto two_pages = [](SubmissionEntry& made) { made.block_count = 15; };
  refused(status::kDataTransferError, [&](SubmissionEntry& made) {
    two_pages(made);
    made.prp2 = end;
  });
  refused(status::kPrpOffsetInvalid, [&](SubmissionEntry& made) {
    two_pages(made);
    made.prp2 = landing + 512;
  });
  // Entries of a list.
  auto* const list = const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(lists));
  const std::uint64_t kept = list[3];
  list[3] = lists;
  refused(status::kDataTransferError, [](SubmissionEntry&) {});
  list[3] = kept + 512;
  refused(status::kPrpOffsetInvalid, [](SubmissionEntry&) {});
  list[3] = kept;
  refused(status::kSuccess, [](SubmissionEntry&) {});
  // No byte was moved for any of them.
  CHECK(queue.controller.statistics().counts.read_bytes == 2 * 65536);
  CHECK(queue.controller.statistics().failed_queues == 0);
}

void follows_scattered_and_chained_lists() {
  RawQueue queue(shape(1, 128, 8192));
  QueueMemory lists(shape(1, 128, 1 << 20));  // only for memory to build lists in
  const std::uint64_t pages = 64;
  for (std::size_t i = 0; i < queue.contents().size(); ++i) {
    queue.contents()[i] = static_cast<std::byte>(i / 4096);
  }
  // Lists lie where the controller expects none here: the command is refused.
  SubmissionEntry made = queue.entry(Opcode::kRead, 0, static_cast<std::uint32_t>(pages * 8));
  made.prp2 = reinterpret_cast<std::uint64_t>(lists.prp_lists().data());
  CHECK(queue.execute(made) == status::kDataTransferError);

  // Followed by hand: every second page backwards, the list chained where its page ends.
  std::vector<std::uint64_t> memory(4096 / 8 * 3);
  auto* const aligned = reinterpret_cast<std::uint64_t*>(
      (reinterpret_cast<std::uintptr_t>(memory.data()) + 4095) / 4096 * 4096);
  TransferLimits limits;
  limits.landing = {reinterpret_cast<std::uint64_t>(queue.landing()), queue.memory.landing().size()};
  limits.lists = {reinterpret_cast<std::uint64_t>(aligned), 8192};
  limits.max_transfer_bytes = 1 << 20;
  std::uint64_t* place = aligned + 512 - 4;
  made.prp2 = reinterpret_cast<std::uint64_t>(place);
  for (std::uint64_t page = 1; page < pages; ++page) {
    if (place == aligned + 511) {
      *place = reinterpret_cast<std::uint64_t>(aligned + 512);
      place = aligned + 512;
    }
    *place++ = limits.landing.first + (2 * (pages - page)) * 4096;
  }
  std::vector<Segment> segments(most_segments(limits));
  std::uint32_t count = 0;
  CHECK(locate(made, pages * 4096, limits, segments.data(), count).ok());
  CHECK(count == pages);
  for (std::uint64_t page = 1; page < pages; ++page) {
    CHECK(reinterpret_cast<std::uint64_t>(segments[page].memory) ==
          limits.landing.first + 2 * (pages - page) * 4096);
    CHECK(segments[page].bytes == 4096);
  }
}

// ThreadSanitizer's runtime does not survive a jump out of a SIGBUS handler.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSurvivesTruncation = false;
#else
constexpr bool kSurvivesTruncation = true;
#endif

void refuses_too_much() {
  QueueMemory memory(shape(1, 4, 4096));
  ControllerOptions options = threads(0);
  options.max_transfer_bytes = 2048;
  bool refused = false;
  try {
    SoftwareController controller(memory, options);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
  options.max_transfer_bytes = 4096;
  SoftwareController controller(memory, options);
  const std::uint32_t nsid = controller.add_namespace(Namespace::memory(1 << 16, 512));
  SubmissionEntry made{};
  made.opcode = static_cast<std::uint8_t>(Opcode::kRead);
  made.nsid = nsid;
  made.prp1 = reinterpret_cast<std::uint64_t>(memory.landing().data());
  made.prp2 = made.prp1 + 4096;
  made.block_count = 8;
  memory.submissions(0)[0] = made;
  *memory.tail_doorbell(0) = 1;
  CHECK(controller.service());
  CHECK((Outcome{memory.completions(0)[0].outcome}.status() == status::kInvalidField));
}

void doorbells_out_of_range() {
  RawQueue queue(shape(2, 8, 4096));
  queue.ring(8);
  CHECK(!queue.controller.service());
  queue.ring(1);  // a queue that failed stays so
  CHECK(!queue.controller.service());
  CHECK(queue.controller.statistics().failed_queues == 1);
  queue.ring(0);
  queue.controller.recreate_queues();
  RawQueue fresh(shape(1, 8, 4096));
  for (int i = 0; i < 3; ++i) fresh.submit(fresh.entry(Opcode::kRead, 0, 1));
  CHECK(fresh.controller.service());
  *fresh.memory.head_doorbell(0) = 5;  // completions that were never posted
  for (int i = 0; i < 5; ++i) fresh.submit(fresh.entry(Opcode::kRead, 0, 1));
  CHECK(!fresh.controller.service());
  CHECK(fresh.controller.statistics().failed_queues == 1);
}

void waits_for_room_in_the_completion_ring() {
  RawQueue queue(shape(1, 8, 4096));
  for (int i = 0; i < 7; ++i) queue.submit(queue.entry(Opcode::kRead, 0, 1));
  CHECK(queue.controller.service());
  for (int i = 0; i < 7; ++i) CHECK(queue.completion(false).has_value());
  // All places of the ring but one are taken until the submitter gives them back.
  for (int i = 0; i < 3; ++i) queue.submit(queue.entry(Opcode::kRead, 0, 1));
  CHECK(!queue.controller.service());
  CHECK(!queue.completion(false).has_value());
  queue.give_back();
  CHECK(queue.controller.service());
  for (int i = 0; i < 3; ++i) CHECK(queue.completion().has_value());
}

void faults_one_by_one() {
  RawQueue queue(shape(1, 32, 4096));
  SoftwareController& controller = queue.controller;

  FaultRule error = rule(FaultKind::kError);
  error.first_lba = 10;
  error.blocks = 5;
  error.opcode = Opcode::kRead;
  error.status = status::kUnrecoveredRead;
  error.most = 3;
  controller.set_faults({error}, 1);
  CHECK(queue.execute(Opcode::kRead, 8, 2).ok());
  CHECK(queue.execute(Opcode::kRead, 15, 1).ok());
  CHECK(queue.execute(Opcode::kWrite, 12, 1).ok());
  CHECK(queue.execute(Opcode::kRead, 8, 3) == status::kUnrecoveredRead);
  CHECK(queue.execute(Opcode::kRead, 14, 1) == status::kUnrecoveredRead);
  CHECK(queue.execute(Opcode::kRead, 5, 8) == status::kUnrecoveredRead);
  CHECK(queue.execute(Opcode::kRead, 12, 1).ok());  // three times at most
  CHECK(controller.statistics().fired == std::vector<std::uint64_t>{3});

  FaultRule tear = rule(FaultKind::kTear);
  tear.bytes = 700;
  tear.status = status::kWriteFault;
  controller.set_faults({tear}, 1);
  std::memset(queue.contents().data(), 0, 1024);
  std::memset(queue.landing(), 0xab, 1024);
  CHECK(queue.execute(Opcode::kWrite, 0, 2) == status::kWriteFault);
  CHECK(queue.contents()[699] == std::byte{0xab} && queue.contents()[700] == std::byte{0});
  CHECK(queue.execute(Opcode::kRead, 0, 2).ok());

  FaultRule wrong = rule(FaultKind::kWrongHead);
  controller.set_faults({wrong}, 1);
  queue.submit(queue.entry(Opcode::kRead, 0, 1));
  CHECK(queue.outcome().submission_head() >= 32);

  controller.set_faults({rule(FaultKind::kLose)}, 1);
  queue.submit(queue.entry(Opcode::kRead, 0, 1));
  CHECK(controller.service() && !queue.completion().has_value());
  CHECK(controller.statistics().counts.lost == 1);

  FaultRule delay = rule(FaultKind::kDelay);
  delay.delay_ns = 20'000'000;
  controller.set_faults({delay}, 1);
  const std::uint64_t before = now_ns();
  std::memset(queue.landing(), 0x11, 1024);
  queue.submit(queue.entry(Opcode::kRead, 0, 2));
  controller.service();
  CHECK(controller.statistics().counts.held == 1);
  CHECK(queue.landing()[0] == std::byte{0x11});  // executed late, not only answered late
  controller.set_faults({}, 1);
  CHECK(queue.outcome().status().ok());
  CHECK(now_ns() - before >= 20'000'000);
  CHECK(queue.landing()[0] == std::byte{0xab});
}

void reorders_within_a_window() {
  RawQueue queue(shape(1, 64, 512));
  FaultRule reorder = rule(FaultKind::kReorder);
  reorder.window = 4;
  reorder.probability = 0.5;
  queue.controller.set_faults({reorder}, 7);
  std::vector<std::uint16_t> order;
  for (std::uint16_t i = 0; i < 40; ++i) {
    SubmissionEntry made = queue.entry(Opcode::kRead, i, 1);
    made.command_id = i;
    queue.submit(made);
  }
  while (order.size() < 40) order.push_back(queue.outcome().command_id());
  std::vector<std::uint16_t> sorted = order;
  std::ranges::sort(sorted);
  for (std::uint16_t i = 0; i < 40; ++i) CHECK(sorted[i] == i);
  CHECK(sorted != order);
}

void faults_repeat_under_a_seed() {
  const auto fates = [](std::uint64_t seed) {
    FaultRule half = rule(FaultKind::kError);
    half.probability = 0.5;
    half.status = status::kInternalError;
    FaultPlan plan({half}, seed);
    std::string found;
    SubmissionEntry made{};
    for (std::uint64_t i = 0; i < 200; ++i) {
      found += plan.decide(made, 1, i).kind == FaultKind::kError ? '1' : '0';
    }
    return found;
  };
  CHECK(fates(1) == fates(1));
  CHECK(fates(1) != fates(2));
  const auto ones = std::ranges::count(fates(1), '1');
  CHECK(ones > 60 && ones < 140);
}

void profiles_take_their_time() {
  RawQueue queue(shape(1, 64, 4096));
  DriveProfile slow{"slow", 2'000'000, 5'000'000, 1000, 1000, 1e9, 1e9};
  queue.controller.set_profile(slow, 1);
  std::uint64_t before = now_ns();
  CHECK(queue.execute(Opcode::kRead, 0, 8).ok());
  CHECK(now_ns() - before >= 2'000'000);
  before = now_ns();
  CHECK(queue.execute(Opcode::kWrite, 0, 8).ok());
  CHECK(now_ns() - before >= 5'000'000);
  // 20 commands at 1,000 a second, whatever they may overlap.
  before = now_ns();
  for (int i = 0; i < 20; ++i) queue.submit(queue.entry(Opcode::kRead, 0, 8));
  for (int i = 0; i < 20; ++i) CHECK(queue.outcome().status().ok());
  CHECK(now_ns() - before >= 20'000'000);
  CHECK(queue.controller.statistics().counts.held == 22);

  // The model alone: bound by commands when small, by bytes when large, in proportion to the drives.
  for (const DriveProfile& profile : drive_profiles()) {
    const DrivePacer one(profile, 1);
    const DrivePacer ten(profile, 10);
    const double small = 1e12 / static_cast<double>(one.cost_ps(Opcode::kRead, 512));
    CHECK(small > 0.99 * profile.read_commands && small < 1.01 * profile.read_commands);
    const double large = 65536e12 / static_cast<double>(one.cost_ps(Opcode::kRead, 65536));
    CHECK(large > 0.99 * profile.read_bytes && large < 1.01 * profile.read_bytes);
    CHECK(ten.cost_ps(Opcode::kRead, 65536) <= one.cost_ps(Opcode::kRead, 65536) / 10);
  }
  DrivePacer pacer(slow, 1);
  const std::uint64_t now = now_ns();
  const std::uint64_t first = pacer.reserve(now, 1000);
  CHECK(pacer.reserve(now, 1000) == first + 1000);
}

void files(const std::string& folder, bool direct) {
  RawQueue queue(shape(1, 8, 65536));
  const std::string path = make_file(folder + "/file", 3 * 4096 + 100, 0x5a);
  const auto open_as = [&](bool writable) {
    return direct ? Namespace::direct_file(path, 512, writable) : Namespace::mapped_file(path, 512, writable);
  };
  queue.nsid = queue.controller.add_namespace(open_as(true));
  CHECK(queue.controller.find_namespace(queue.nsid)->view().blocks == 25);
  // The last block is not whole: zeros follow.
  std::memset(queue.landing(), 0xee, 65536);
  CHECK(queue.execute(Opcode::kRead, 20, 5).ok());
  CHECK(queue.landing()[4 * 512 + 99] == std::byte{0x5a});
  for (int i = 100; i < 512; ++i) CHECK(queue.landing()[4 * 512 + i] == std::byte{0});
  CHECK(queue.execute(Opcode::kWrite, 20, 5) == status::kCapacityExceeded);
  CHECK(queue.execute(Opcode::kRead, 24, 2) == status::kLbaOutOfRange);
  std::memset(queue.landing(), 0x77, 65536);
  CHECK(queue.execute(Opcode::kWrite, 1, 10).ok());
  CHECK(queue.execute(Opcode::kFlush, 0, 1).ok());
  CHECK(queue.execute(Opcode::kRead, 0, 2).ok());
  CHECK(queue.landing()[511] == std::byte{0x5a} && queue.landing()[512] == std::byte{0x77});
  struct stat found;
  CHECK(stat(path.c_str(), &found) == 0 && found.st_size == 3 * 4096 + 100);
  // Torn on its way to a file, too.
  FaultRule tear = rule(FaultKind::kTear);
  tear.bytes = 512;
  queue.controller.set_faults({tear}, 1);
  std::memset(queue.landing(), 0x33, 65536);
  CHECK(queue.execute(Opcode::kWrite, 16, 2).ok());
  queue.controller.set_faults({}, 1);
  CHECK(queue.execute(Opcode::kRead, 16, 2).ok());
  CHECK(queue.landing()[511] == std::byte{0x33} && queue.landing()[512] == std::byte{0x5a});

  queue.nsid = queue.controller.add_namespace(open_as(false));
  CHECK(queue.execute(Opcode::kWrite, 0, 1) == status::kAccessDenied);
  CHECK(queue.execute(Opcode::kRead, 0, 1).ok());
  // Truncated: a status, in the middle of a batch of good ones.
  if (!direct && !kSurvivesTruncation) return;
  CHECK(truncate(path.c_str(), 4096) == 0);
  for (int i = 0; i < 7; ++i) queue.submit(queue.entry(Opcode::kRead, i % 2 == 0 ? 0 : 9, 1));
  for (int i = 0; i < 7; ++i) {
    const Outcome outcome = queue.outcome();
    if (!direct) CHECK((outcome.status() == (i % 2 == 0 ? status::kSuccess : status::kUnrecoveredRead)));
  }
  queue.nsid = 2;  // writable
  CHECK(queue.execute(Opcode::kRead, 9, 1) == status::kUnrecoveredRead);
  if (!direct) CHECK(queue.execute(Opcode::kWrite, 9, 1) == status::kWriteFault);
  CHECK(queue.controller.remove_namespace(2, in_seconds(60)));
  CHECK(queue.execute(Opcode::kRead, 0, 1) == status::kInvalidNamespace);
}

void impossible_namespaces(const std::string& folder) {
  const auto refused = [](auto make) {
    try {
      make();
    } catch (const std::exception&) {
      return true;
    }
    return false;
  };
  CHECK(refused([] { Namespace::memory(4096, 1024); }));
  CHECK(refused([&] { Namespace::mapped_file(folder + "/none", 512, false); }));
  CHECK(refused([&] { Namespace::mapped_file(folder, 512, false); }));
  CHECK(refused([&] { Namespace::mapped_file("/dev/null", 512, false); }));
  CHECK(Namespace::mapped_file(make_file(folder + "/empty", 0, 0), 512, true)->view().blocks == 0);
  RawQueue queue(shape(1, 4, 4096));
  CHECK(refused([&] { queue.controller.remove_namespace(9, in_seconds(1)); }));
}

// A client that reads as fast as it can; returns how its commands ended.
void read_on(const Pool& pool, SoftwareController& controller, std::atomic<std::uint32_t>& nsid,
             const std::atomic<bool>& enough,
             const std::function<void(std::uint32_t, Status, std::byte*)>& saw) {
  Lease lease(pool, controller);
  CHECK(lease.begun().ok());
  while (!enough.load()) {
    std::uint32_t slot = 0;
    CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
    const std::uint32_t asked = nsid.load();
    CHECK(lease.pair().issue(slot, {Opcode::kRead, asked, 9, 4}).ok());
    saw(asked, lease.pair().wait(slot, in_seconds(60)), lease.pair().landing(slot));
    lease.pair().release_slot(slot);
  }
  CHECK(lease.end(in_seconds(60)).ok());
}

// Namespaces come and go while clients read: every answer is the content or "no such namespace".
void files_come_and_go(const std::string& folder, int controller_threads) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(controller_threads));
  controller.start();
  const auto activity = controller.activity();
  const Pool pool(memory);
  const std::string path = make_file(folder + "/goes", 1 << 16, 0x42);
  std::atomic<std::uint32_t> nsid{controller.add_namespace(Namespace::mapped_file(path, 512, false))};
  std::atomic<bool> enough{false};
  std::atomic<std::uint64_t> good{0}, gone{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      read_on(pool, controller, nsid, enough, [&](std::uint32_t, Status status, const std::byte* bytes) {
        if (status.ok()) CHECK(bytes[0] == std::byte{0x42} && bytes[2047] == std::byte{0x42});
        if (!status.ok()) CHECK(status == status::kInvalidNamespace);
        (status.ok() ? good : gone).fetch_add(1);
      });
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t before = nsid.load();
    const bool direct = i % 3 == 0;
    if (i % 2 == 0) CHECK(controller.remove_namespace(before, in_seconds(60)));
    nsid = controller.add_namespace(direct ? Namespace::direct_file(path, 512, false)
                                           : Namespace::mapped_file(path, 512, false));
    if (i % 2 != 0) CHECK(controller.remove_namespace(before, in_seconds(60)));
    const std::uint64_t seen = good.load();
    await([&] { return good.load() > seen; });
  }
  enough = true;
  for (std::thread& client : clients) client.join();
  CHECK(good.load() >= 200);
}

// The file shrinks and grows under readers: content or "unrecovered read", nothing else, and no SIGBUS.
void truncated_under_load(const std::string& folder) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(1));
  controller.start();
  const auto activity = controller.activity();
  const Pool pool(memory);
  const std::string path = make_file(folder + "/shrinks", 1 << 16, 0x42);
  std::atomic<std::uint32_t> nsid{controller.add_namespace(Namespace::mapped_file(path, 512, false))};
  std::atomic<bool> enough{false};
  std::atomic<std::uint64_t> good{0}, lost{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      read_on(pool, controller, nsid, enough, [&](std::uint32_t, Status status, const std::byte*) {
        if (!status.ok()) CHECK(status == status::kUnrecoveredRead);
        (status.ok() ? good : lost).fetch_add(1);
      });
    });
  }
  for (int i = 0; i < 50; ++i) {
    CHECK(truncate(path.c_str(), i % 2 == 0 ? 0 : 1 << 16) == 0);
    std::atomic<std::uint64_t>& expected = i % 2 == 0 ? lost : good;
    const std::uint64_t seen = expected.load();
    await([&] { return expected.load() > seen; });
  }
  enough = true;
  for (std::thread& client : clients) client.join();
}

// Stopping answers what is there, held or not, and starting goes on where the rings are.
void stops_under_load(int controller_threads) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(controller_threads));
  const std::uint32_t nsid = controller.add_namespace(Namespace::memory(1 << 20, 512));
  FaultRule delay = rule(FaultKind::kDelay);
  delay.delay_ns = 3600 * kSecond;
  delay.probability = 0.2;
  controller.set_faults({delay}, 3);
  const auto activity = controller.activity();
  const Pool pool(memory);
  std::uint64_t deleted = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 19) controller.set_faults({}, 3);
    controller.start();
    Lease lease(pool, controller);
    CHECK(lease.begun().ok());
    std::vector<std::uint32_t> slots(15);
    for (std::uint32_t& slot : slots) {
      CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
      CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
    }
    if (round % 2 == 0 || round == 19) controller.service();
    if (round < 19) CHECK(controller.stop(in_seconds(60)));
    for (const std::uint32_t slot : slots) {
      const Status status = lease.pair().wait(slot, in_seconds(60));
      CHECK(status.ok() || (status == status::kQueueDeleted && round < 19));
      deleted += status.ok() ? 0 : 1;
      lease.pair().release_slot(slot);
    }
    CHECK(lease.end(in_seconds(60)).ok());
  }
  CHECK(deleted > 0);
}

// Threads sleep without activity, serve with it, and a forked child does not wait for them.
void threads_park_and_wake() {
  QueueMemory memory(shape(1, 16, 4096));
  auto controller = std::make_unique<SoftwareController>(memory, threads(2));
  CHECK(controller->threads() == 1);  // no more than queue pairs
  const std::uint32_t nsid = controller->add_namespace(Namespace::memory(1 << 20, 512));
  controller->start();
  const Pool pool(memory);
  Lease lease(pool, *controller);
  const auto cpu = [&] { return controller->statistics().thread_seconds[0]; };
  double parked = 0;
  await([&] {
    const double before = cpu();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    parked = cpu();
    return parked == before;  // not a microsecond
  });
  std::uint32_t slot = 0;
  CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
  CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
  controller->wake();
  CHECK(lease.pair().wait(slot, in_seconds(60)).ok());
  {
    const auto activity = controller->activity();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
    CHECK(lease.pair().wait(slot, in_seconds(60)).ok());
  }
  CHECK(cpu() > parked);
  lease.pair().release_slot(slot);
  CHECK(lease.end(in_seconds(60)).ok());
#if !defined(__SANITIZE_THREAD__)  // which cannot fork while threads run
  const pid_t child = fork();
  if (child == 0) {
    controller.reset();
    _exit(7);
  }
  int how = 0;
  CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 7);
#endif
}

// After a broken protocol the queues are deleted, created again, and work.
void recreates_queues() {
  QueueMemory memory(shape(1, 8, 4096));
  SoftwareController controller(memory, threads(1));
  const std::uint32_t nsid = controller.add_namespace(Namespace::memory(1 << 20, 512));
  const auto activity = controller.activity();
  for (int round = 0; round < 2; ++round) {
    controller.start();
    const Pool pool(memory);
    Lease lease(pool, controller);
    for (int i = 0; i < 20; ++i) {
      if (i == 19) controller.set_faults({rule(FaultKind::kWrongHead)}, 1);
      std::uint32_t slot = 0;
      CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
      CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
      const Status status = lease.pair().wait(slot, in_seconds(60));
      CHECK((status == (i == 19 ? status::kQueueBroken : status::kSuccess)) || (i == 19 && status.ok()));
      if (!loses_slot(status)) lease.pair().release_slot(slot);
    }
    CHECK(lease.pair().pair().broken());
    controller.set_faults({}, 1);
    CHECK(controller.stop(in_seconds(60)));
    controller.recreate_queues();
  }
}

}  // namespace
}  // namespace bamquery::test

int main(int count, char** arguments) {
  using namespace bamquery::test;
  CHECK(count == 2 || count == 4);
  const std::string folder = arguments[1];
  if (count == 4) {
    stress(folder, std::strtoull(arguments[2], nullptr, 10), std::strtod(arguments[3], nullptr));
    return 0;
  }
  reads_and_writes();
  refuses_what_is_not_valid();
  follows_scattered_and_chained_lists();
  refuses_too_much();
  doorbells_out_of_range();
  waits_for_room_in_the_completion_ring();
  faults_one_by_one();
  reorders_within_a_window();
  faults_repeat_under_a_seed();
  profiles_take_their_time();
  files(folder, false);
  files(folder, true);
  impossible_namespaces(folder);
  for (const int controller_threads : {0, 1}) {
    files_come_and_go(folder, controller_threads);
    stops_under_load(controller_threads);
  }
  if (kSurvivesTruncation) truncated_under_load(folder);
  threads_park_and_wake();
  recreates_queues();
  std::puts("all controller tests passed");
  return 0;
}
