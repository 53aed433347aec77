#include "driver/native/files/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "driver/native/crc32c.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/files/bus_guard.hpp"
#include "driver/native/threads/shared_work.hpp"

namespace bamquery {
namespace {

// Far enough ahead to hide a cache miss, near enough not to be evicted again.
constexpr std::size_t kPrefetchItems = 16;

// What Linux reads ahead by default, and what any advice is followed for.
constexpr std::int64_t kReadAhead = 128 << 10;

// The longest runs of a selection that are asked for exactly. Reading ahead brings what lies around them, as
// much as a drive is set to, some 8 MiB, which only pays for what is longer.
constexpr std::int64_t kLongestExact = 4 << 20;

// Bytes that are handed out in one turn: they stay in a processor's own cache until they were used.
constexpr std::int64_t kTurnBytes = 64 << 10;

// Bytes that are worth another thread: to copy and to check them takes some 100 microseconds.
constexpr std::int64_t kLeastBytes = 512 << 10;

// Lines of a cache that are worth another thread.
constexpr std::int64_t kLeastLines = 4096;

const std::int64_t kPageSize = sysconf(_SC_PAGESIZE);

template <std::size_t Width>
void gather_fixed(const RowItems& items, const std::byte* from, std::byte* to) {
  const std::size_t count = items.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kPrefetchItems < count) __builtin_prefetch(from + items.offset(i + kPrefetchItems));
    std::memcpy(to + i * Width, from + items.offset(i), Width);
  }
}

void gather_any(const RowItems& items, const std::byte* from, std::byte* to) {
  const auto width = static_cast<std::size_t>(items.width);
  for (std::size_t i = 0; i < items.size(); ++i) std::memcpy(to + i * width, from + items.offset(i), width);
}

void gather_rows(const RowItems& rows, const std::byte* from, std::byte* to) {
  switch (rows.width) {
    case 1:
      return gather_fixed<1>(rows, from, to);
    case 2:
      return gather_fixed<2>(rows, from, to);
    case 4:
      return gather_fixed<4>(rows, from, to);
    case 8:
      return gather_fixed<8>(rows, from, to);
    case 16:
      return gather_fixed<16>(rows, from, to);
    default:
      return gather_any(rows, from, to);
  }
}

// Lines of the cache that rows are in, about.
std::int64_t count_lines(const RowItems& rows) {
  constexpr std::int64_t kLine = 64;
  if (rows.size() == 0) return 0;
  const std::int64_t span = rows.offset(rows.size() - 1) - rows.offset(0);
  return std::min(static_cast<std::int64_t>(rows.size()), span / kLine + 1);
}

// Index of the first of `count` consecutive targets whose checksum differs, or -1.
std::int64_t verify(const RangeItems& ranges, std::size_t first, std::size_t count,
                    const std::byte* const targets[4], std::span<const std::uint32_t> checksums) {
  std::uint32_t found[4];
  bool equal_lengths = count == 4;
  for (std::size_t i = 1; i < count; ++i) equal_lengths &= ranges.length(first + i) == ranges.length(first);
  if (equal_lengths) {
    crc32c_four(targets, static_cast<std::size_t>(ranges.length(first)), found);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      found[i] = crc32c({targets[i], static_cast<std::size_t>(ranges.length(first + i))});
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (found[i] != checksums[first + i]) return static_cast<std::int64_t>(first + i);
  }
  return -1;
}

// Has the first bytes of a range on their way to the caches.
void prefetch_bytes(const std::byte* from, std::int64_t length) {
  constexpr std::int64_t kLine = 64;
  constexpr std::int64_t kMost = 4 << 10;
  for (std::int64_t at = 0; at < std::min(length, kMost); at += kLine) __builtin_prefetch(from + at);
}

// Copies ranges `first` to `end` - 1 out of a map and compares them with their checksums, if there are any.
// Returns the first that differs, or -1; what is behind it may not have been copied. Has no destructors.
std::int64_t copy_ranges(const std::byte* from, const RangeItems& ranges, std::size_t first, std::size_t end,
                         std::span<const std::uint32_t> checksums, std::byte* to) {
  constexpr std::size_t kGroup = 4;  // few enough that the checksums find them in the first cache
  while (first < end) {
    // Ranges that lie apart are no stream that a processor would follow by itself.
    for (std::size_t next = first + kGroup; next < std::min(first + 2 * kGroup, end); ++next) {
      prefetch_bytes(from + ranges.offset(next), ranges.length(next));
    }
    const std::size_t count = std::min(kGroup, end - first);
    const std::byte* targets[kGroup];
    for (std::size_t i = 0; i < count; ++i) {
      const auto length = static_cast<std::size_t>(ranges.length(first + i));
      if (length > 0) std::memcpy(to, from + ranges.offset(first + i), length);
      targets[i] = to;
      to += length;
    }
    const std::int64_t differs = checksums.empty() ? -1 : verify(ranges, first, count, targets, checksums);
    if (differs >= 0) return differs;
    first += count;
  }
  return -1;
}

// Ranges of about as many bytes as those of the other runs.
struct RangeRun {
  std::size_t first;
  std::size_t end;
  std::int64_t at;            // bytes of the ranges before
  std::int64_t differs = -1;  // the first whose checksum does
  bool is_readable = true;
};

// Runs of ranges that several threads can copy: one where they are few.
std::vector<RangeRun> cut_runs(const RangeItems& ranges) {
  const std::int64_t bytes = std::accumulate(ranges.lengths.begin(), ranges.lengths.end(), std::int64_t{0});
  const std::int64_t parts = worth_parts(bytes, kLeastBytes);
  if (parts == 1) return {{0, ranges.size(), 0}};
  std::vector<RangeRun> runs;
  const std::int64_t most = bytes / parts + 1;
  RangeRun run{0, 0, 0};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    at += ranges.length(i);
    run.end = i + 1;
    if (at - run.at < most && run.end < ranges.size()) continue;
    runs.push_back(run);
    run = {i + 1, i + 1, at};
  }
  return runs;
}

// True if the page cache has some of the items, taken here and there, not one missing.
template <typename Items>
bool probably_cached(std::span<const std::byte> mapped, const Items& items) {
  constexpr std::size_t kProbes = 16;
  const std::size_t step = items.size() / kProbes + 1;
  for (std::size_t i = 0; i < items.size(); i += step) {
    if (items.length(i) == 0) continue;
    const std::int64_t page = items.offset(i) / kPageSize * kPageSize;
    unsigned char resident = 0;
    auto* const address = const_cast<std::byte*>(mapped.data()) + page;
    if (mincore(address, 1, &resident) == 0 && (resident & 1) == 0) return false;
  }
  return true;
}

// Whether items lie end to end, so that the next call is likely to go on where they end.
template <typename Items>
bool is_stream(const Items& items) {
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (items.offset(i - 1) + items.length(i - 1) != items.offset(i)) return false;
  }
  return true;
}

// Asks for scattered pages all at once where they must come from the device: faults alone would fetch them
// one after the other, however many reads the device could do side by side. Runs of more than `longest` bytes
// are left to reading ahead.
template <typename Items>
void prefetch(std::span<const std::byte> mapped, const Items& items, std::int64_t longest) {
  const auto size = static_cast<std::int64_t>(mapped.size());
  for_each_run(items, kPageSize, [&](std::int64_t first, std::int64_t last, std::size_t, std::size_t) {
    const std::int64_t end = std::min((last + 1) * kPageSize, size);
    if (end - first * kPageSize > longest) return;
    for (std::int64_t at = first * kPageSize; at < end; at += kReadAhead) {
      // Advice only: what the device cannot give is found out when it is read.
      madvise(const_cast<std::byte*>(mapped.data()) + at,
              static_cast<std::size_t>(std::min(kReadAhead, end - at)), MADV_WILLNEED);
    }
  });
}

}  // namespace

MappedFile::MappedFile(std::string path, std::int64_t expected_size, std::int64_t block_size)
    : file_(std::move(path), expected_size, 0), block_size_(block_size) {
  check_block_size(block_size);
  if (expected_size == 0) {
    file_.close_descriptor();
    return;
  }
  stream_ = map(MADV_NORMAL);
  try {
    random_ = map(MADV_RANDOM);
  } catch (...) {
    munmap(const_cast<std::byte*>(stream_.data()), stream_.size());
    throw;
  }
  file_.close_descriptor();  // maps outlive it, and a process has few
}

MappedFile::~MappedFile() {
  for (const auto mapped : {stream_, random_}) {
    if (!mapped.empty()) munmap(const_cast<std::byte*>(mapped.data()), mapped.size());
  }
}

std::span<const std::byte> MappedFile::map(int advice) const {
  const auto size = static_cast<std::size_t>(file_.size());
  void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (address == MAP_FAILED) throw system_error(file_.path(), "cannot be mapped");
  madvise(address, size, advice);  // advice only: reads are right without it
  return {static_cast<const std::byte*>(address), size};
}

template <typename Items>
std::int64_t MappedFile::longest_prefetch(std::span<const std::byte> mapped, const Items& items) const {
  if (mapped.data() == random_.data()) return file_.size();  // nothing is read ahead there
  return is_stream(items) ? kReadAhead : kLongestExact;
}

template <typename Items>
void MappedFile::prepare(std::span<const std::byte> mapped, const Items& items) const {
  check_items(items, file_.size());
  if (!probably_cached(mapped, items)) prefetch(mapped, items, longest_prefetch(mapped, items));
}

template <typename Items, typename Work>
ReadCounts MappedFile::read(std::span<const std::byte> mapped, const Items& items, Work& work) const {
  prepare(mapped, items);
  if (!guarded(mapped, work)) file_.throw_read_error(items.offset(0), EIO);
  return count_blocks(items, block_size_);
}

ReadCounts MappedFile::read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                   std::byte* target, std::int64_t& mismatch) const {
  prepare(stream_, ranges);
  std::vector<RangeRun> runs = cut_runs(ranges);
  share_parts(static_cast<std::int64_t>(runs.size()), [&](std::int64_t part) {
    RangeRun& run = runs[static_cast<std::size_t>(part)];
    auto work = [&] {
      run.differs = copy_ranges(stream_.data(), ranges, run.first, run.end, checksums, target + run.at);
    };
    run.is_readable = guarded(stream_, work);
  });
  mismatch = -1;
  for (const RangeRun& run : runs) {  // what one thread would have found first
    if (!run.is_readable) file_.throw_read_error(ranges.offset(0), EIO);
    if (run.differs < 0) continue;
    mismatch = run.differs;
    break;
  }
  return count_blocks(ranges, block_size_);
}

ReadCounts MappedFile::hand_out_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                       const TakeRanges& take, std::int64_t& mismatch) const {
  prepare(stream_, ranges);
  mismatch = -1;
  std::vector<std::byte> turn;  // keeps its size where ranges are about as long as those before
  for (std::size_t first = 0; first < ranges.size() && mismatch < 0;) {
    std::size_t end = first;
    std::int64_t bytes = 0;
    do {
      bytes += ranges.length(end++);
    } while (end < ranges.size() && bytes + ranges.length(end) <= kTurnBytes);
    if (turn.size() < static_cast<std::size_t>(bytes)) turn.resize(static_cast<std::size_t>(bytes));
    std::int64_t differs = -1;
    auto work = [&] { differs = copy_ranges(stream_.data(), ranges, first, end, checksums, turn.data()); };
    if (!guarded(stream_, work)) file_.throw_read_error(ranges.offset(first), EIO);
    mismatch = differs;
    if (differs < 0) take(first, end, {turn.data(), static_cast<std::size_t>(bytes)});
    first = end;
  }
  return count_blocks(ranges, block_size_);
}

bool MappedFile::are_at_hand(const RangeItems& ranges) const {
  check_items(ranges, file_.size());
  return probably_cached(stream_, ranges);
}

void MappedFile::expect_ranges(const RangeItems& ranges) const { prepare(stream_, ranges); }

void MappedFile::read_expected(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                               std::byte* target, std::int64_t& mismatch) const {
  check_items(ranges, file_.size());
  std::int64_t differs = -1;
  auto work = [&] { differs = copy_ranges(stream_.data(), ranges, 0, ranges.size(), checksums, target); };
  if (ranges.size() > 0 && !guarded(stream_, work)) file_.throw_read_error(ranges.offset(0), EIO);
  mismatch = differs;
}

ReadCounts MappedFile::gather(const RowItems& rows, std::byte* target) const {
  prepare(random_, rows);
  const auto count = static_cast<std::int64_t>(rows.size());
  std::atomic<bool> is_readable = true;
  share_items(count, worth_parts(count_lines(rows), kLeastLines), 1,
              [&](std::int64_t, std::int64_t first, std::int64_t own) {
                const RowItems some{
                    rows.base, rows.stride, rows.width,
                    rows.rows.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(own))};
                auto work = [&] { gather_rows(some, random_.data(), target + first * rows.width); };
                if (!guarded(random_, work)) is_readable = false;
              });
  if (!is_readable) file_.throw_read_error(rows.offset(0), EIO);
  return count_blocks(rows, block_size_);
}

ReadCounts MappedFile::gather(const RowItems& rows, std::byte* target, HeldBlocks& held) const {
  gather(rows, target);  // the page cache holds the bytes
  const std::vector<std::int64_t> blocks = held.missing(this, rows, block_size_);
  held.add(blocks, nullptr, block_size_);
  return count_blocks(whole_blocks(blocks, block_size_), block_size_);
}

ReadCounts MappedFile::gather_bit_bytes(const BitItems& rows, std::byte* target) const {
  const std::byte* const from = random_.data();
  auto work = [&] {
    for (std::size_t i = 0; i < rows.size(); ++i) target[i] = from[rows.offset(i)];
  };
  return read(random_, rows, work);
}

}  // namespace bamquery
