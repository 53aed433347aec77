#include "driver/native/memory/large_memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

namespace bamquery {
namespace {

constexpr std::size_t kPage = 4096, kLargePage = std::size_t{2} << 20;

// Blocks that are kept at most: they are looked through.
constexpr std::size_t kMostBlocks = 512;

// AddressSanitizer is to see each use of what was given back, and of what is behind what was asked for.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BAMQUERY_WATCHED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(BAMQUERY_WATCHED)
constexpr bool kIsWatched = true;
#else
constexpr bool kIsWatched = false;
#endif

struct Block {
  std::byte* begin;
  std::size_t size;
  void* mapped;  // with what lies before its first large page
  std::size_t mapped_size;
};

// There are eight sizes between a power of two and the next, so that blocks do for arrays of about their
// size.
std::size_t block_size(std::size_t bytes) {
  if (kIsWatched) return bytes;
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t step = std::bit_floor(std::max(bytes, kLeastLarge)) / 8;
  return (bytes + step - 1) / step * step;
}

// What an array does not write to may be in memory all the same, so no block is larger by more than a
// quarter.
bool does(std::size_t size, std::size_t wanted) { return wanted <= size && size - wanted <= wanted / 4; }

Block map_block(std::size_t size) {
  if (kIsWatched) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kPage, size) != 0) throw std::bad_alloc();
    return {static_cast<std::byte*>(memory), size, memory, size};
  }
  const bool has_large_pages = size >= kLargePage;
  const std::size_t mapped_size = size + (has_large_pages ? kLargePage : 0);
  void* const memory = mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(memory);
  if (has_large_pages) {
    begin += -reinterpret_cast<std::uintptr_t>(memory) % kLargePage;
#if defined(MADV_HUGEPAGE)
    madvise(begin, size, MADV_HUGEPAGE);  // where there are none, small ones do
#endif
  }
  return {begin, size, memory, mapped_size};
}

void unmap_block(const Block& block) noexcept {
  if (kIsWatched) {
    std::free(block.mapped);
  } else {
    munmap(block.mapped, block.mapped_size);
  }
}

// Blocks are mapped and unmapped while no lock is held.
class Pool {
 public:
  Pool() {
    kept_.reserve(kMostBlocks);
    // A child has no other thread that could unlock it.
    pthread_atfork([] { the().mutex_.lock(); }, [] { the().mutex_.unlock(); }, [] { the().mutex_.unlock(); });
  }

  // Never destroyed: arrays live on while the process ends.
  static Pool& the() {
    static Pool& pool = *new Pool();
    return pool;
  }

  std::byte* take(std::size_t bytes, bool* is_zero) {
    const std::size_t wanted = block_size(bytes);
    if (is_zero != nullptr) *is_zero = false;
    {
      const std::scoped_lock lock(mutex_);
      auto best = kept_.rend();
      for (auto one = kept_.rbegin(); one != kept_.rend(); ++one) {  // the last one is in a cache, perhaps
        if (does(one->size, wanted) && (best == kept_.rend() || one->size < best->size)) best = one;
      }
      if (best != kept_.rend()) {
        const Block found = *best;
        used_.emplace(found.begin, found);
        kept_.erase(std::next(best).base());
        kept_bytes_ -= found.size;
        used_bytes_ += found.size;
        return found.begin;
      }
    }
    const Block fresh = map_block(wanted);
    try {
      const std::scoped_lock lock(mutex_);
      used_.emplace(fresh.begin, fresh);
      used_bytes_ += fresh.size;
    } catch (...) {
      unmap_block(fresh);
      throw;
    }
    if (is_zero != nullptr) *is_zero = !kIsWatched;
    return fresh.begin;
  }

  bool give(void* memory) noexcept {
    Block block;
    std::size_t most = 0;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = used_.find(memory);
      if (found == used_.end()) return false;
      block = found->second;
      used_.erase(found);
      used_bytes_ -= block.size;
      most = most_kept_;
      if (block.size <= most && kept_.size() < kMostBlocks) {
        kept_.push_back(block);  // which has room
        kept_bytes_ += block.size;
        block.size = 0;
      }
    }
    if (block.size > 0) unmap_block(block);
    release(most);
    return true;
  }

  std::size_t size(const void* memory) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = used_.find(memory);
    return found == used_.end() ? 0 : found->second.size;
  }

  void keep(std::size_t most) noexcept {
    if (kIsWatched) return;
    {
      const std::scoped_lock lock(mutex_);
      most_kept_ = most;
    }
    release(most);
  }

  void release(std::size_t but) noexcept {
    while (const std::optional<Block> block = oldest(but)) unmap_block(*block);
  }

  LargeMemory bytes() noexcept {
    const std::scoped_lock lock(mutex_);
    return {used_bytes_, kept_bytes_};
  }

 private:
  std::optional<Block> oldest(std::size_t but) noexcept {
    const std::scoped_lock lock(mutex_);
    if (kept_bytes_ <= but) return std::nullopt;
    const Block block = kept_.front();
    kept_.erase(kept_.begin());
    kept_bytes_ -= block.size;
    return block;
  }

  std::mutex mutex_;
  std::unordered_map<const void*, Block> used_;
  std::vector<Block> kept_;  // as they were given back
  std::size_t used_bytes_ = 0, kept_bytes_ = 0, most_kept_ = 0;
};

}  // namespace

std::byte* take_large(std::size_t bytes, bool* is_zero) { return Pool::the().take(bytes, is_zero); }

bool give_large(void* memory) noexcept {
  // Most other memory is told from blocks without the lock.
  return reinterpret_cast<std::uintptr_t>(memory) % kPage == 0 && Pool::the().give(memory);
}

std::size_t large_size(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % kPage == 0 ? Pool::the().size(memory) : 0;
}

void keep_large(std::size_t most) noexcept { Pool::the().keep(most); }

void release_large(std::size_t but) noexcept { Pool::the().release(but); }

LargeMemory large_memory() noexcept { return Pool::the().bytes(); }

}  // namespace bamquery
