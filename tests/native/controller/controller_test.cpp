// The software controller, entry by entry: statuses, faults, profiles, files.
// Usage: controller_test FOLDER [SEED SECONDS, of the stress]

#include "tests/native/controller/controller_test.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "driver/native/controller/command_check.hpp"
#include "driver/native/controller/drive_profile.hpp"
#include "tests/native/rings/raw_queue.hpp"

namespace bamquery::test {
namespace {

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
  FaultRule error = rule(FaultKind::kError);  // which keeps its place behind the wait
  error.status = status::kUnrecoveredRead;
  queue.controller.set_faults({error}, 1);
  std::uint64_t before = now_ns();
  CHECK(queue.execute(Opcode::kRead, 0, 8) == status::kUnrecoveredRead);
  CHECK(now_ns() - before >= 2'000'000);
  queue.controller.set_faults({}, 1);
  before = now_ns();
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
  CHECK(queue.controller.statistics().counts.held == 23);

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
  under_load(folder);
  std::puts("all controller tests passed");
  return 0;
}
