#include "driver/native/executors/io_uring.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace bamquery {
namespace {

using namespace uring;

// What io_uring/io_uring.c returns EPERM for: the sysctl, or else a filter of system calls.
std::string permission_refusal() {
  int disabled = 0;
  std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled;
  if (disabled == 2) {
    return "io_uring is switched off on this machine: set kernel.io_uring_disabled=0 (sysctl) to allow it";
  }
  if (disabled == 1) {
    return "io_uring is for privileged processes only on this machine: set kernel.io_uring_disabled=0, or "
           "join the group kernel.io_uring_group (sysctl)";
  }
  return "this process may not use io_uring: its container or sandbox filters system calls (Docker: "
         "--security-opt seccomp=unconfined, or a profile that allows io_uring_setup, io_uring_enter)";
}

std::string refusal(int number) {
  if (number == ENOSYS) return "this kernel has no io_uring: it takes Linux 5.11 or newer, built with it";
  if (number == EPERM || number == EACCES) return permission_refusal();
  if (number == ENOMEM) {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return "the kernel has no memory for io_uring's rings: raise the limit of locked memory (ulimit -l, "
           "now " +
           std::to_string(limit.rlim_cur >> 10) + " KiB)";
  }
  if (number == EMFILE || number == ENFILE) return "too many open files for io_uring: raise ulimit -n";
  return "io_uring cannot be set up: " + std::generic_category().message(number);
}

// Words of the rings are shared with the kernel.
std::atomic_ref<std::uint32_t> shared(std::uint32_t* word) { return std::atomic_ref<std::uint32_t>(*word); }

std::uint32_t* word_at(std::byte* rings, std::uint32_t offset) {
  return reinterpret_cast<std::uint32_t*>(rings + offset);
}

}  // namespace

IoUring::IoUring(std::uint32_t entries) {
  Parameters parameters{};
  parameters.flags = kSetupClamp;  // fewer than asked for where the kernel allows no more
  descriptor_ = static_cast<int>(syscall(kSetupCall, entries, &parameters));
  if (descriptor_ < 0) throw IoUringUnavailable(refusal(errno));
  constexpr std::uint32_t kNeeded = kFeatureSingleMap | kFeatureNoDrop | kFeatureWaitArgument;
  if ((parameters.features & kNeeded) != kNeeded) {
    release();
    throw IoUringUnavailable("this kernel's io_uring is too old: it takes Linux 5.11 or newer");
  }
  entries_count_ = parameters.submission_entries;
  rings_bytes_ = std::max(
      parameters.submission.array + entries_count_ * sizeof(std::uint32_t),
      parameters.completion.entries_offset + parameters.completion_entries * sizeof(uring::CompletionEntry));
  entries_bytes_ = entries_count_ * sizeof(uring::SubmissionEntry);
  const auto map = [this](std::size_t bytes, std::int64_t offset) -> void* {
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, offset);
    if (address != MAP_FAILED) return address;
    const int number = errno;
    release();
    throw IoUringUnavailable(refusal(number));
  };
  rings_ = static_cast<std::byte*>(map(rings_bytes_, kRingsOffset));
  entries_ = static_cast<uring::SubmissionEntry*>(map(entries_bytes_, kEntriesOffset));
  submission_head_ = word_at(rings_, parameters.submission.head);
  submission_tail_ = word_at(rings_, parameters.submission.tail);
  completion_head_ = word_at(rings_, parameters.completion.head);
  completion_tail_ = word_at(rings_, parameters.completion.tail);
  completions_ = reinterpret_cast<uring::CompletionEntry*>(rings_ + parameters.completion.entries_offset);
  completion_mask_ = parameters.completion_entries - 1;
  // Positions and entries go together for good: entry i is always at position i.
  std::uint32_t* const order = word_at(rings_, parameters.submission.array);
  for (std::uint32_t i = 0; i < entries_count_; ++i) order[i] = i;
}

IoUring::~IoUring() {
  // The kernel writes into buffers until their operations have ended. What it was never told of has not
  // begun.
  std::array<Completion, 64> ignored;
  try {
    for (in_flight_ -= prepared_, prepared_ = 0; in_flight_ > 0; reap(ignored)) wait(100'000'000);
  } catch (const std::system_error&) {
    // Nothing more can be asked of this ring; closing it cancels what can be cancelled.
  }
  release();
}

void IoUring::release() noexcept {
  if (rings_ != nullptr) munmap(rings_, rings_bytes_);
  if (entries_ != nullptr) munmap(entries_, entries_bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool IoUring::read(int file, std::byte* to, std::uint32_t length, std::int64_t offset, std::uint64_t tag) {
  return prepare(kRead, file, reinterpret_cast<std::uintptr_t>(to), length, offset, 0, tag);
}

bool IoUring::write(int file, const std::byte* from, std::uint32_t length, std::int64_t offset,
                    std::uint64_t tag) {
  return prepare(kWrite, file, reinterpret_cast<std::uintptr_t>(from), length, offset, 0, tag);
}

bool IoUring::sync_data(int file, std::uint64_t tag) {
  return prepare(kSyncFile, file, 0, 0, 0, kDataOnly, tag);
}

bool IoUring::prepare(std::uint8_t opcode, int file, std::uint64_t address, std::uint32_t length,
                      std::int64_t offset, std::uint32_t flags, std::uint64_t tag) {
  // In flight counts more than the ring holds, so a position is always free where this is.
  if (in_flight_ == entries_count_) return false;
  // Relaxed: only we write the tail.
  const std::uint32_t tail = shared(submission_tail_).load(std::memory_order_relaxed);
  uring::SubmissionEntry& entry = entries_[tail & (entries_count_ - 1)];
  entry = {};
  entry.opcode = opcode;
  entry.file = file;
  entry.offset = static_cast<std::uint64_t>(offset);
  entry.address = address;
  entry.length = length;
  entry.operation_flags = flags;
  entry.tag = tag;
  // Release: the entry must be there before the kernel sees the tail.
  shared(submission_tail_).store(tail + 1, std::memory_order_release);
  ++prepared_;
  ++in_flight_;
  return true;
}

void IoUring::wait(std::uint64_t timeout_ns) {
  if (completion_ready()) return submit();
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const TimeSpan timeout{static_cast<std::int64_t>(timeout_ns / kSecond),
                         static_cast<long long>(timeout_ns % kSecond)};
  enter(1, &timeout);
}

void IoUring::enter(std::uint32_t minimum, const TimeSpan* timeout) {
  if (prepared_ == 0 && minimum == 0) return;
  WaitArgument argument{};
  argument.signal_bytes = _NSIG / 8;
  argument.timeout = reinterpret_cast<std::uintptr_t>(timeout);
  const std::uint32_t flags = minimum > 0 ? kEnterGetEvents | kEnterWaitArgument : 0;
  const long taken = syscall(kEnterCall, descriptor_, prepared_, minimum, flags,
                             minimum > 0 ? &argument : nullptr, minimum > 0 ? sizeof argument : 0);
  if (taken >= 0) {
    prepared_ -= static_cast<std::uint32_t>(taken);
    return;
  }
  // Nothing was taken. Time over and signals are no errors; resources come back as operations complete.
  if (errno == ETIME || errno == EINTR || errno == EAGAIN || errno == EBUSY) {
    // Acquire: entries before the head are the kernel's no more. A wait that timed out may have taken them.
    const std::uint32_t head = shared(submission_head_).load(std::memory_order_acquire);
    prepared_ = shared(submission_tail_).load(std::memory_order_relaxed) - head;
    return;
  }
  throw std::system_error(errno, std::generic_category(), "io_uring_enter");
}

bool IoUring::completion_ready() const {
  // Relaxed: a hint, and only we write the head.
  return shared(completion_tail_).load(std::memory_order_relaxed) !=
         shared(completion_head_).load(std::memory_order_relaxed);
}

std::size_t IoUring::reap(std::span<Completion> into) {
  std::uint32_t head = shared(completion_head_).load(std::memory_order_relaxed);  // only we write it
  // Acquire: the entries, and the data they speak of, were written before the tail.
  const std::uint32_t tail = shared(completion_tail_).load(std::memory_order_acquire);
  std::size_t count = 0;
  for (; head != tail && count < into.size(); ++head, ++count) {
    const uring::CompletionEntry& entry = completions_[head & completion_mask_];
    into[count] = {entry.tag, entry.result};
  }
  // Release: the kernel may write these entries again only after they were read.
  shared(completion_head_).store(head, std::memory_order_release);
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

std::string io_uring_refusal() {
  try {
    const IoUring probe(1);
    return {};
  } catch (const IoUringUnavailable& error) {
    return error.what();
  }
}

}  // namespace bamquery
