#include "direct_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "crc32c.hpp"
#include "errors.hpp"
#include "thread_pool.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kLargestRequest = 1 << 20;
// No device asks more of a buffer's address.
constexpr std::size_t kBufferAlignment = 4096;

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, Free>;

AlignedBuffer allocate_aligned(std::int64_t size) {
  const auto rounded =
      (static_cast<std::size_t>(size) + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBuffer(memory);
}

// A landing buffer of the calling thread, as large as the largest command it has seen.
std::byte* landing_buffer(std::int64_t size) {
  thread_local AlignedBuffer buffer;
  thread_local std::int64_t capacity = 0;
  if (size > capacity) {
    buffer = allocate_aligned(size);
    capacity = size;
  }
  return buffer.get();
}

// The first failure of many threads' work; the others stop early.
class FirstFailure {
 public:
  explicit operator bool() const { return failed_.load(std::memory_order_relaxed); }
  void capture() {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    failed_.store(true, std::memory_order_relaxed);  // a hint only: the error itself is read after all joined
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
};

// Where in the target dense items go: items of one width, or of many.
struct FixedTarget {
  std::byte* base;
  std::int64_t width;
  std::byte* operator[](std::size_t i) const { return base + static_cast<std::int64_t>(i) * width; }
};
struct RangeTarget {
  std::vector<std::byte*> starts;
  std::byte* operator[](std::size_t i) const { return starts[i]; }
};

// Where the whole command may land at once: its items lie end to end, cover it, and their target is aligned.
template <typename Items, typename Target>
std::byte* direct_landing(const Items& items, const Target& target, const Command& command) {
  std::int64_t end = items.offset(command.first_item);
  if (end > command.offset) return nullptr;
  std::byte* const landing = target[command.first_item] + (command.offset - end);
  if (reinterpret_cast<std::uintptr_t>(landing) % kBufferAlignment != 0) return nullptr;
  for (std::size_t i = command.first_item; i < command.end_item; ++i) {
    if (items.offset(i) != end) return nullptr;
    end += items.length(i);
  }
  return end >= command.offset + command.length ? landing : nullptr;
}

template <typename Items, typename Target>
void copy_items(const Items& items, const Target& target, const Command& command, const std::byte* landed) {
  for (std::size_t i = command.first_item; i < command.end_item; ++i) {
    const std::int64_t begin = std::max(items.offset(i), command.offset);
    const std::int64_t end = std::min(items.offset(i) + items.length(i), command.offset + command.length);
    if (end <= begin) continue;
    std::memcpy(target[i] + (begin - items.offset(i)), landed + (begin - command.offset),
                static_cast<std::size_t>(end - begin));
  }
}

}  // namespace

DirectFile::DirectFile(std::string path, std::int64_t expected_size, std::int64_t block_size, int depth)
    : file_(std::move(path), expected_size, O_DIRECT), block_size_(block_size), depth_(depth) {
  if (depth < 1) throw std::invalid_argument("depth must be positive");
  if (block_size != 0) check_block_size(block_size);
  const std::int64_t needed = device_block_size();
  if (block_size_ == 0) block_size_ = needed;
  if (block_size_ < needed) {
    throw StorageError(file_.path(), "its device reads blocks of " + std::to_string(needed) +
                                         " bytes, not of " + std::to_string(block_size_) +
                                         ": set a larger block size");
  }
}

// What statx says; where it says nothing, the smallest block that can be read.
std::int64_t DirectFile::device_block_size() const {
#ifdef STATX_DIOALIGN
  struct statx status;
  if (statx(file_.descriptor(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) {
      throw StorageError(file_.path(), "its file system has no direct reads: use reader=\"mapped\"");
    }
    return std::max<std::int64_t>(status.stx_dio_offset_align, 512);
  }
#endif
  const AlignedBuffer buffer = allocate_aligned(kBufferAlignment);
  for (const std::int64_t size : {512, 4096}) {
    // A read behind the first block, so that one of a smaller size is seen to be refused.
    if (pread(file_.descriptor(), buffer.get(), static_cast<std::size_t>(size), size) >= 0) return size;
  }
  throw system_error(file_.path(), "its file system refuses direct reads: use reader=\"mapped\"");
}

void DirectFile::read_at(std::int64_t offset, std::int64_t length, std::byte* buffer) const {
  const std::int64_t wanted = std::min(length, file_.size() - offset);  // the last block may be short
  for (std::int64_t done = 0; done < wanted;) {
    const ssize_t got =
        pread(file_.descriptor(), buffer + done, static_cast<std::size_t>(length - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file_.throw_read_error(offset + done, errno);
    done += got;
    // Reads may stop early, but between blocks; anywhere else is the end of the file.
    if (done < wanted && (got == 0 || done % block_size_ != 0)) file_.throw_read_error(offset + done, EIO);
  }
}

// Reads every item; calls `finished(i)`, in some thread, when item i is complete, if `finished` counts.
template <typename Items, typename Target, typename Finished>
ReadCounts DirectFile::read_items(const Items& items, const Target& target, const Finished& finished) const {
  check_items(items, file_.size());
  const std::vector<Command> commands =
      cut_commands(items, block_size_, std::max(kLargestRequest, block_size_));
  finished.expect(commands);
  FirstFailure failure;
  run_parallel(depth_, static_cast<std::int64_t>(commands.size()), [&](std::int64_t task) {
    if (failure) return;
    try {
      const Command& command = commands[static_cast<std::size_t>(task)];
      if (std::byte* const landing = direct_landing(items, target, command);
          landing != nullptr && command.offset + command.length <= file_.size()) {
        read_at(command.offset, command.length, landing);
      } else {
        std::byte* const landed = landing_buffer(command.length);
        read_at(command.offset, command.length, landed);
        copy_items(items, target, command, landed);
      }
      finished.read(command);
    } catch (...) {
      failure.capture();
    }
  });
  failure.rethrow();
  ReadCounts counts{static_cast<std::int64_t>(commands.size()), 0};
  for (const Command& command : commands) counts.blocks += command.length / block_size_;
  return counts;
}

namespace {

// Where nobody asks whether items are what they should be.
struct Unverified {
  void expect(const std::vector<Command>& /*commands*/) const {}
  void read(const Command& /*command*/) const {}
};

// Checks each range in the thread that read the last piece of it.
class Verifier {
 public:
  Verifier(const RangeItems& ranges, const RangeTarget& target, std::span<const std::uint32_t> checksums)
      : ranges_(ranges), target_(target), checksums_(checksums) {}

  void expect(const std::vector<Command>& commands) const {
    if (checksums_.empty()) return;
    pieces_ = std::vector<std::atomic<std::int32_t>>(ranges_.size());
    for (const Command& command : commands) {
      for (std::size_t i = command.first_item; i < command.end_item; ++i) ++pieces_[i];
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == 0) check(i);  // empty ranges
    }
  }

  void read(const Command& command) const {
    if (checksums_.empty()) return;
    for (std::size_t i = command.first_item; i < command.end_item; ++i) {
      // Release what this thread copied; acquire what others did, once it is the last.
      if (pieces_[i].fetch_sub(1, std::memory_order_acq_rel) == 1) check(i);
    }
  }

  std::int64_t mismatch() const {
    const auto found = static_cast<std::size_t>(first_mismatch_.load());
    return found == ranges_.size() ? -1 : static_cast<std::int64_t>(found);
  }

 private:
  void check(std::size_t i) const {
    if (crc32c({target_[i], static_cast<std::size_t>(ranges_.length(i))}) == checksums_[i]) return;
    std::size_t seen = first_mismatch_.load();
    while (i < seen && !first_mismatch_.compare_exchange_weak(seen, i)) {
    }
  }

  const RangeItems& ranges_;
  const RangeTarget& target_;
  std::span<const std::uint32_t> checksums_;
  mutable std::vector<std::atomic<std::int32_t>> pieces_;
  mutable std::atomic<std::size_t> first_mismatch_{ranges_.size()};
};

}  // namespace

ReadCounts DirectFile::read_ranges(const RangeItems& ranges, std::span<const std::uint32_t> checksums,
                                   std::byte* target, std::int64_t& mismatch) const {
  RangeTarget targets;
  targets.starts.reserve(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    targets.starts.push_back(target);
    target += ranges.length(i);
  }
  const Verifier verifier(ranges, targets, checksums);
  const ReadCounts counts = read_items(ranges, targets, verifier);
  mismatch = verifier.mismatch();
  return counts;
}

ReadCounts DirectFile::gather(const RowItems& rows, std::byte* target) const {
  return read_items(rows, FixedTarget{target, rows.width}, Unverified{});
}

ReadCounts DirectFile::gather_bit_bytes(const BitItems& rows, std::byte* target) const {
  return read_items(rows, FixedTarget{target, 1}, Unverified{});
}

}  // namespace bamquery
