// io_uring and what carries out direct reads, writes and flushes by it or by threads: the same bytes and
// statuses, whatever the file does. Usage: uring_test FOLDER, which allows direct reads

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/executors/direct_executor.hpp"
#include "driver/native/executors/file_transfer.hpp"
#include "driver/native/executors/io_uring.hpp"
#include "driver/native/threads/thread_pool.hpp"
#include "driver/native/files/direct_io.hpp"

namespace {

using namespace bamquery;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kBlock = 4096;

std::mt19937_64 random_bits(3);

std::uint64_t below(std::uint64_t limit) { return random_bits() % limit; }

// A file of the test's own, opened with O_DIRECT.
class TestFile {
 public:
  TestFile(const std::string& folder, std::size_t size) : path_(folder + "/uring"), contents_(size) {
    for (std::byte& byte : contents_) byte = static_cast<std::byte>(random_bits());
    const int plain = open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    CHECK(plain >= 0 && write(plain, contents_.data(), size) == static_cast<ssize_t>(size));
    CHECK(fsync(plain) == 0 && close(plain) == 0);
    descriptor_ = open(path_.c_str(), O_RDWR | O_DIRECT);
    CHECK(descriptor_ >= 0);
  }
  ~TestFile() { close(descriptor_); }

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::int64_t size() const { return static_cast<std::int64_t>(contents_.size()); }
  std::vector<std::byte>& contents() { return contents_; }

 private:
  std::string path_;
  std::vector<std::byte> contents_;
  int descriptor_;
};

Status run(AsyncExecutor& executor, const AsyncOperation& operation) {
  CHECK(executor.start(operation));
  std::array<AsyncOutcome, 4> outcomes;
  for (int tries = 0; tries < 30; ++tries) {
    const std::size_t count = executor.reap(outcomes, kSecond);
    if (count == 0) continue;
    CHECK(count == 1 && outcomes[0].tag == operation.tag && executor.in_flight() == 0);
    return outcomes[0].status;
  }
  CHECK(!"an outcome came");
  return {};
}

void test_ring(TestFile& file) {
  IoUring ring(5);
  CHECK(ring.capacity() == 8);
  const AlignedBuffer buffer = allocate_aligned(8 * kBlock);
  // More operations than the ring has positions, so that they wrap around; several to each call.
  std::uint64_t tag = 0, seen = 0;
  std::map<std::uint64_t, std::int64_t> offsets;
  while (seen < 1000) {
    while (ring.in_flight() < 1 + below(8)) {
      const auto offset = static_cast<std::int64_t>(below(32) * kBlock);
      const std::uint64_t place = tag % 8;
      if (offsets.contains(place)) break;
      CHECK(ring.read(file.descriptor(), buffer.get() + place * kBlock, kBlock, offset, tag));
      offsets[place] = offset;
      ++tag;
    }
    std::array<IoUring::Completion, 3> completions;
    if (below(2) == 0) ring.submit();
    if (ring.in_flight() > 0) ring.wait(10 * kSecond);
    const std::size_t count = ring.reap(completions);
    for (std::size_t i = 0; i < count; ++i, ++seen) {
      CHECK(completions[i].result == kBlock);
      const std::uint64_t place = completions[i].tag % 8;
      CHECK(std::memcmp(buffer.get() + place * kBlock, file.contents().data() + offsets.at(place), kBlock) ==
            0);
      offsets.erase(place);
    }
  }
  for (std::uint64_t place = 0; ring.in_flight() < 8; ++place) {
    CHECK(ring.read(file.descriptor(), buffer.get() + place * kBlock, kBlock, 0, place));
  }
  CHECK(!ring.read(file.descriptor(), buffer.get(), kBlock, 0, 99));  // full; destroyed with all in flight
}

void test_a_wait_ends_without_a_completion() {
  IoUring ring(2);
  std::array<int, 2> ends;
  CHECK(pipe(ends.data()) == 0);
  std::byte one{};
  CHECK(ring.read(ends[0], &one, 1, -1, 7));
  std::array<IoUring::Completion, 2> completions;
  for (int turn = 0; turn < 3; ++turn) {
    ring.wait(1'000'000);
    CHECK(ring.reap(completions) == 0 && ring.in_flight() == 1);
  }
  CHECK(write(ends[1], "x", 1) == 1);
  ring.wait(10 * kSecond);
  CHECK(ring.reap(completions) == 1 && completions[0].tag == 7 && completions[0].result == 1);
  CHECK(one == std::byte{'x'});
  close(ends[0]);
  close(ends[1]);
}

void test_reads_and_writes(AsyncExecutor& executor, TestFile& file, std::uint32_t depth) {
  const AlignedBuffer buffer = allocate_aligned(depth * 16 * kBlock);
  struct Flight {
    AsyncOperation operation;
    std::vector<std::byte> written;
  };
  std::vector<Flight> flights(depth);
  std::vector<std::uint64_t> places;
  for (std::uint64_t place = 0; place < depth; ++place) places.push_back(place);
  std::vector<bool> busy(static_cast<std::size_t>(file.size()) / kBlock + 1);
  const auto blocks = static_cast<std::uint64_t>(file.size()) / kBlock;
  std::uint64_t started = 0, ended = 0;
  const std::uint64_t wanted = 1500;
  while (ended < wanted) {
    while (started < wanted && !places.empty() && below(8) != 0) {
      const std::uint64_t count = 1 + below(16);
      const std::uint64_t first = below(blocks - count + 1);
      const auto range = [&](auto&& visit) {
        for (std::uint64_t i = 0; i < count; ++i) visit(first + i);
      };
      bool free = true;
      range([&](std::uint64_t block) { free = free && !busy[block]; });
      if (!free) continue;
      range([&](std::uint64_t block) { busy[block] = true; });
      const std::uint64_t place = places.back();
      places.pop_back();
      std::byte* const memory = buffer.get() + place * 16 * kBlock;
      const std::size_t bytes = count * kBlock;
      Flight& flight = flights[place];
      flight.written.clear();
      const Opcode opcode = below(3) == 0 ? Opcode::kWrite : Opcode::kRead;
      if (opcode == Opcode::kWrite) {
        flight.written.resize(bytes);
        for (std::byte& byte : flight.written) byte = static_cast<std::byte>(random_bits());
        std::memcpy(memory, flight.written.data(), bytes);
      }
      flight.operation = {opcode,
                          file.descriptor(),
                          file.size(),
                          static_cast<std::int64_t>(first * kBlock),
                          static_cast<std::uint32_t>(bytes),
                          memory,
                          place};
      CHECK(executor.start(flight.operation));
      ++started;
    }
    std::array<AsyncOutcome, 5> outcomes;
    const std::size_t count = executor.reap(outcomes, below(2) == 0 ? 0 : 10 * kSecond);
    for (std::size_t i = 0; i < count; ++i, ++ended) {
      CHECK(outcomes[i].status.ok());
      const Flight& flight = flights[outcomes[i].tag];
      const AsyncOperation& operation = flight.operation;
      std::byte* const expected = file.contents().data() + operation.offset;
      if (operation.opcode == Opcode::kWrite) std::memcpy(expected, flight.written.data(), operation.bytes);
      CHECK(std::memcmp(operation.memory, expected, operation.bytes) == 0);
      for (std::uint32_t at = 0; at < operation.bytes; at += kBlock) {
        busy[(static_cast<std::uint64_t>(operation.offset) + at) / kBlock] = false;
      }
      places.push_back(outcomes[i].tag);
    }
  }
  CHECK(executor.in_flight() == 0);
  CHECK(run(executor, {Opcode::kFlush, file.descriptor(), file.size(), 0, 0, nullptr, 5}).ok());
}

void test_edges(AsyncExecutor& executor, const std::string& folder) {
  TestFile file(folder, 10 * kBlock + 100);
  const AlignedBuffer buffer = allocate_aligned(2 * kBlock);
  const int descriptor = file.descriptor();
  const auto last = static_cast<std::int64_t>(10 * kBlock);
  // The last block is there in part: zeros follow.
  std::memset(buffer.get(), 0xEE, kBlock);
  CHECK(run(executor, {Opcode::kRead, descriptor, file.size(), last, kBlock, buffer.get(), 1}).ok());
  CHECK(std::memcmp(buffer.get(), file.contents().data() + last, 100) == 0);
  CHECK(
      std::all_of(buffer.get() + 100, buffer.get() + kBlock, [](std::byte b) { return b == std::byte{0}; }));
  // Writing it would make the file longer.
  CHECK(run(executor, {Opcode::kWrite, descriptor, file.size(), last, kBlock, buffer.get(), 2}) ==
        status::kCapacityExceeded);
  // Behind what is left of a truncated file, at any place: not at a sector's end, at one, at a block's.
  for (const std::int64_t size :
       {std::int64_t{5 * kBlock + 77}, std::int64_t{5 * kBlock + 512}, std::int64_t{5 * kBlock}}) {
    CHECK(ftruncate(descriptor, size) == 0);
    CHECK(run(executor, {Opcode::kRead, descriptor, file.size(), 5 * kBlock, kBlock, buffer.get(), 3}) ==
          status::kUnrecoveredRead);
    CHECK(run(executor, {Opcode::kRead, descriptor, file.size(), 9 * kBlock, kBlock, buffer.get(), 4}) ==
          status::kUnrecoveredRead);
    CHECK(run(executor, {Opcode::kRead, descriptor, file.size(), last, kBlock, buffer.get(), 4}) ==
          status::kUnrecoveredRead);
    CHECK(run(executor, {Opcode::kRead, descriptor, file.size(), 4 * kBlock, kBlock, buffer.get(), 5}).ok());
  }
}

void test_failures(AsyncExecutor& executor, TestFile& file) {
  const AlignedBuffer buffer = allocate_aligned(kBlock);
  const auto outcome = [&](Opcode opcode, int descriptor, std::int64_t offset, std::byte* memory) {
    return run(executor, {opcode, descriptor, std::int64_t{1} << 40, offset, kBlock, memory, 1});
  };
  // EIO: no page is mapped there.
  const int memory = open("/proc/self/mem", O_RDONLY);
  CHECK(memory >= 0);
  CHECK(outcome(Opcode::kRead, memory, kBlock, buffer.get()) == status::kUnrecoveredRead);
  CHECK(outcome(Opcode::kWrite, memory, kBlock, buffer.get()) == status::kAccessDenied);  // EBADF: read-only
  close(memory);
  const int full = open("/dev/full", O_WRONLY);
  CHECK(full >= 0);
  CHECK(outcome(Opcode::kWrite, full, 0, buffer.get()) == status::kCapacityExceeded);  // ENOSPC
  close(full);
  // EINVAL, except where the file system takes any place in a file for a direct read (tmpfs since Linux 6.6).
  const bool aligned_only = pread(file.descriptor(), buffer.get(), kBlock, 1) < 0 && errno == EINVAL;
  const auto misplaced = outcome(Opcode::kRead, file.descriptor(), 1, buffer.get());
  CHECK(aligned_only ? misplaced == status::kInvalidField : misplaced.ok());
  void* const guarded = mmap(nullptr, kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(guarded != MAP_FAILED);
  CHECK(outcome(Opcode::kRead, file.descriptor(), 0, static_cast<std::byte*>(guarded)) ==
        status::kDataTransferError);  // EFAULT
  munmap(guarded, kBlock);
  std::array<int, 2> ends;
  CHECK(pipe(ends.data()) == 0);
  CHECK(!outcome(Opcode::kFlush, ends[0], 0, nullptr).ok());
  close(ends[0]);
  close(ends[1]);
  CHECK(outcome(Opcode::kRead, file.descriptor(), 0, buffer.get()).ok());  // and goes on
}

// What no file here does at will.
void test_transfers() {
  const AlignedBuffer buffer = allocate_aligned(kBlock);
  const auto transfer = [&](Opcode opcode) {
    return FileTransfer({opcode, 0, 8 * kBlock, kBlock, kBlock, buffer.get(), 1});
  };
  FileTransfer pieces = transfer(Opcode::kRead);
  CHECK(!pieces.advance(512) && pieces.bytes() == kBlock - 512 && pieces.offset() == kBlock + 512);
  CHECK(!pieces.advance(-EINTR) && !pieces.advance(-EAGAIN) && pieces.bytes() == kBlock - 512);
  CHECK(pieces.memory() == buffer.get() + 512);
  CHECK(pieces.advance(kBlock - 512) == status::kSuccess);
  CHECK(transfer(Opcode::kRead).advance(100) == status::kUnrecoveredRead);
  CHECK(transfer(Opcode::kWrite).advance(0) == status::kWriteFault);
  CHECK(transfer(Opcode::kWrite).advance(-EIO) == status::kWriteFault);
  CHECK(transfer(Opcode::kFlush).advance(-EIO) == status::kWriteFault);
  CHECK(transfer(Opcode::kFlush).advance(0) == status::kSuccess);
  FileTransfer busy = transfer(Opcode::kRead);
  std::optional<Status> status;
  for (int tries = 0; tries < 20'000 && !status; ++tries) status = busy.advance(-EAGAIN);
  CHECK(status == status::kInternalError);  // not for ever
}

void test_full(AsyncExecutor& executor, TestFile& file, std::uint32_t depth) {
  const AlignedBuffer buffer = allocate_aligned(kBlock * (depth + 1));
  const auto operation = [&](std::uint64_t tag) {
    return AsyncOperation{Opcode::kRead, file.descriptor(),           file.size(), 0,
                          kBlock,        buffer.get() + tag * kBlock, tag};
  };
  for (std::uint64_t tag = 0; tag < depth; ++tag) CHECK(executor.start(operation(tag)));
  CHECK(!executor.start(operation(depth)) && executor.in_flight() == depth);
  std::array<AsyncOutcome, 64> outcomes;
  std::vector<bool> seen(depth);
  for (std::size_t count = 0; count < depth;) {
    const std::size_t found = executor.reap(outcomes, 10 * kSecond);
    for (std::size_t i = 0; i < found; ++i, ++count) {
      CHECK(outcomes[i].status.ok() && !seen[outcomes[i].tag]);
      seen[outcomes[i].tag] = true;
    }
  }
  CHECK(executor.reap(outcomes, kSecond) == 0);  // nothing is under way: does not sleep
}

void test_executors(const std::string& folder, DirectPath path) {
  constexpr std::uint32_t kDepth = 16;
  TestFile file(folder, 200 * kBlock);
  const auto executor = make_direct_executor(kDepth, path);
  CHECK(executor->path().starts_with(path == DirectPath::kUring ? "io_uring" : "preadv: "));
  test_reads_and_writes(*executor, file, kDepth);
  test_full(*executor, file, kDepth);
  test_edges(*executor, folder);
  test_failures(*executor, file);
  // One after the other, threads that each take over where the last one stopped.
  for (int turn = 0; turn < 4; ++turn) {
    std::thread([&] { test_full(*executor, file, kDepth); }).join();
  }
  // Given up with everything in flight: nothing may be written to the buffer afterwards.
  const AlignedBuffer buffer = allocate_aligned(kDepth * kBlock);
  const auto abandoned = make_direct_executor(kDepth, path);
  for (std::uint64_t tag = 0; tag < kDepth; ++tag) {
    CHECK(abandoned->start(
        {Opcode::kRead, file.descriptor(), file.size(), 0, kBlock, buffer.get() + tag * kBlock, tag}));
  }
  std::array<AsyncOutcome, 1> outcomes;
  abandoned->reap(outcomes, 0);
}

void test_thread_pool() {
  std::atomic<int> done{0};
  for (int i = 0; i < 1000; ++i) {
    CHECK(run_in_pool([&done] { done.fetch_add(1, std::memory_order_release); }));
  }
  while (done.load(std::memory_order_acquire) < 1000) std::this_thread::yield();
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const std::string folder = argv[1];
  test_transfers();
  test_thread_pool();
  test_executors(folder, DirectPath::kThreads);
  const std::string refusal = io_uring_refusal();
  if (!refusal.empty()) {
    CHECK(make_direct_executor(4)->path() == "preadv: " + refusal);
    std::printf("without io_uring: %s\n", refusal.c_str());
    return 0;
  }
  CHECK(make_direct_executor(4)->path() == "io_uring");
  TestFile file(folder, 32 * kBlock);
  test_ring(file);
  test_a_wait_ends_without_a_completion();
  test_executors(folder, DirectPath::kUring);
  std::puts("all disk tests passed");
}
