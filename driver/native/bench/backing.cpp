#include "driver/native/bench/backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "driver/native/errors.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

// Work on all pieces, on all cores.
template <typename Work>
void for_pieces(std::size_t bytes, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    // Relaxed: it only hands out pieces; joining publishes what was done to them.
    for (std::size_t first; (first = next.fetch_add(kPieceBytes, std::memory_order_relaxed)) < bytes;) {
      work(first, std::min(kPieceBytes, bytes - first));
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(take);
  take();
}

// A loop over words that are known to be right or wrong only at its end, so that it vectorises.
template <typename Wrong>
std::int64_t scan(std::span<const std::byte> bytes, std::uint64_t first_sector, const Wrong& wrong) {
  for (std::size_t at = 0; at + kContentSectorBytes <= bytes.size(); at += kContentSectorBytes) {
    std::uint64_t words[kContentSectorWords];
    std::memcpy(words, bytes.data() + at, kContentSectorBytes);
    const std::uint64_t sector = first_sector + at / kContentSectorBytes;
    const std::int64_t word = wrong(words, sector);
    if (word >= 0) return static_cast<std::int64_t>(at) + word * 8;
  }
  return -1;
}

}  // namespace

void fill_content(std::span<std::byte> target, std::uint64_t seed, std::uint64_t first_sector) {
  for (std::size_t at = 0; at + kContentSectorBytes <= target.size(); at += kContentSectorBytes) {
    const std::uint64_t key = content_key(seed, first_sector + at / kContentSectorBytes);
    std::uint64_t words[kContentSectorWords];
    for (std::uint32_t word = 0; word < kContentSectorWords; ++word) words[word] = content_word(key, word);
    std::memcpy(target.data() + at, words, kContentSectorBytes);
  }
}

std::int64_t find_wrong(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t first_sector) {
  return scan(bytes, first_sector, [seed](const std::uint64_t* words, std::uint64_t sector) -> std::int64_t {
    const std::uint64_t key = content_key(seed, sector);
    std::uint64_t difference = 0;
    for (std::uint32_t word = 0; word < kContentSectorWords; ++word) {
      difference |= words[word] ^ content_word(key, word);
    }
    if (difference == 0) return -1;
    std::uint32_t word = 0;
    while (words[word] == content_word(key, word)) ++word;
    return word;
  });
}

std::int64_t find_wrong_of_two(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t other,
                               std::uint64_t first_sector) {
  return scan(
      bytes, first_sector, [seed, other](const std::uint64_t* words, std::uint64_t sector) -> std::int64_t {
        const std::uint64_t key = content_key(seed, sector);
        const std::uint64_t other_key = content_key(other, sector);
        for (std::uint32_t word = 0; word < kContentSectorWords; ++word) {
          if (words[word] != content_word(key, word) && words[word] != content_word(other_key, word)) {
            return word;
          }
        }
        return -1;
      });
}

BenchBacking::BenchBacking(const std::string& path, std::uint64_t bytes, bool writable)
    : path_(path), bytes_(static_cast<std::size_t>(bytes)) {
  void* address = MAP_FAILED;
  if (path.empty()) {
    address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address != MAP_FAILED) madvise(address, bytes_, MADV_HUGEPAGE);  // refused: small pages will do
  } else {
    const int file = open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file < 0) throw system_error(path, "cannot be opened");
    struct stat found{};
    if (fstat(file, &found) != 0 || static_cast<std::uint64_t>(found.st_size) < bytes) {
      close(file);
      throw StorageError(path, "is smaller than the extent to be measured");
    }
    address = mmap(nullptr, bytes_, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file, 0);
    const int failed = errno;
    close(file);  // the map keeps it open
    errno = failed;
  }
  if (address == MAP_FAILED) throw system_error(path, "cannot be mapped");
  address_ = static_cast<std::byte*>(address);
}

BenchBacking::~BenchBacking() { munmap(address_, bytes_); }

void BenchBacking::fill(std::uint64_t seed) const {
  for_pieces(bytes_, [&](std::size_t first, std::size_t size) {
    fill_content(bytes().subspan(first, size), seed, first / kContentSectorBytes);
  });
  // Direct reads see what is on disk; dirty pages would have to be written out in the midst of them.
  if (!path_.empty() && msync(address_, bytes_, MS_SYNC) != 0) throw system_error(path_, "cannot be written");
}

std::int64_t BenchBacking::check(std::uint64_t seed, std::uint64_t written_seed, std::uint32_t block_bytes,
                                 const WrittenBlocks& written) const {
  std::atomic<std::int64_t> first_wrong{-1};
  for_pieces(bytes_, [&](std::size_t first, std::size_t size) {
    const std::size_t step = std::min<std::size_t>(block_bytes, kPieceBytes);
    for (std::size_t at = first; at < first + size; at += step) {
      const std::uint64_t expected = written.marked(at / block_bytes) ? written_seed : seed;
      const auto piece = bytes().subspan(at, std::min(step, first + size - at));
      const std::int64_t wrong = find_wrong(piece, expected, at / kContentSectorBytes);
      if (wrong < 0) continue;
      // Relaxed: any of the wrong places will do, and joining publishes it.
      first_wrong.store(static_cast<std::int64_t>(at) + wrong, std::memory_order_relaxed);
      return;
    }
  });
  return first_wrong.load(std::memory_order_relaxed);
}

}  // namespace bamquery
