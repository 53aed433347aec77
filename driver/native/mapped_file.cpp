#include "mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "bus_guard.hpp"
#include "crc32c.hpp"
#include "errors.hpp"

namespace bamquery {
namespace {

// Far enough ahead to hide a cache miss, near enough not to be evicted again.
constexpr std::size_t kPrefetchItems = 16;

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

}  // namespace

MappedFile::MappedFile(std::string path, std::int64_t expected_size, std::int64_t block_size)
    : file_(std::move(path), expected_size, 0), block_size_(block_size) {
  check_block_size(block_size);
  if (expected_size == 0) return;
  stream_ = map(MADV_NORMAL);
  try {
    random_ = map(MADV_RANDOM);
  } catch (...) {
    munmap(const_cast<std::byte*>(stream_.data()), stream_.size());
    throw;
  }
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

template <typename Work>
void MappedFile::read(std::span<const std::byte> mapped, std::int64_t offset, Work& work) const {
  if (!guarded(mapped, work)) file_.throw_read_error(offset, EIO);
}

ReadCounts MappedFile::read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                   std::byte* target, std::int64_t& mismatch) const {
  check_items(ranges, file_.size());
  const std::byte* const from = stream_.data();
  std::int64_t differs = -1;
  auto work = [&] {
    constexpr std::size_t kGroup = 4;  // few enough that the checksums find them in the first cache
    std::byte* to = target;
    for (std::size_t first = 0; first < ranges.size() && differs < 0; first += kGroup) {
      const std::size_t count = std::min(kGroup, ranges.size() - first);
      const std::byte* targets[kGroup];
      for (std::size_t i = 0; i < count; ++i) {
        const auto length = static_cast<std::size_t>(ranges.length(first + i));
        if (length > 0) std::memcpy(to, from + ranges.offset(first + i), length);
        targets[i] = to;
        to += length;
      }
      if (!checksums.empty()) differs = verify(ranges, first, count, targets, checksums);
    }
  };
  read(stream_, ranges.size() == 0 ? 0 : ranges.offset(0), work);
  mismatch = differs;
  return count_blocks(ranges, block_size_);
}

ReadCounts MappedFile::gather(const RowItems& rows, std::byte* target) const {
  check_items(rows, file_.size());
  const std::byte* const from = random_.data();
  auto work = [&] {
    switch (rows.width) {
      case 1:
        return gather_fixed<1>(rows, from, target);
      case 2:
        return gather_fixed<2>(rows, from, target);
      case 4:
        return gather_fixed<4>(rows, from, target);
      case 8:
        return gather_fixed<8>(rows, from, target);
      case 16:
        return gather_fixed<16>(rows, from, target);
      default:
        return gather_any(rows, from, target);
    }
  };
  read(random_, rows.size() == 0 ? 0 : rows.offset(0), work);
  return count_blocks(rows, block_size_);
}

ReadCounts MappedFile::gather_bit_bytes(const BitItems& rows, std::byte* target) const {
  check_items(rows, file_.size());
  const std::byte* const from = random_.data();
  auto work = [&] {
    for (std::size_t i = 0; i < rows.size(); ++i) target[i] = from[rows.offset(i)];
  };
  read(random_, rows.size() == 0 ? 0 : rows.offset(0), work);
  return count_blocks(rows, block_size_);
}

}  // namespace bamquery
