// The part of the kernel's io_uring interface (linux/io_uring.h) that io_uring.cpp uses, so that building
// needs neither liburing, which is no package of every Python index and distribution, nor recent headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bamquery::uring {

// The numbers are the same on every architecture (asm-generic/unistd.h).
inline constexpr long kSetupCall = 425;
inline constexpr long kEnterCall = 426;
inline constexpr long kRegisterCall = 427;

struct SubmissionEntry {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint16_t priority;
  std::int32_t file;
  std::uint64_t offset;
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t operation_flags;
  std::uint64_t tag;
  std::uint64_t unused[3];
};
static_assert(sizeof(SubmissionEntry) == 64 && offsetof(SubmissionEntry, tag) == 32);

struct CompletionEntry {
  std::uint64_t tag;
  std::int32_t result;
  std::uint32_t flags;
};
static_assert(sizeof(CompletionEntry) == 16);

struct SubmissionOffsets {
  std::uint32_t head, tail, mask, entries, flags, dropped, array, unused;
  std::uint64_t user_address;
};

struct CompletionOffsets {
  std::uint32_t head, tail, mask, entries, overflow, entries_offset, flags, unused;
  std::uint64_t user_address;
};

struct Parameters {
  std::uint32_t submission_entries, completion_entries, flags, thread_cpu, thread_idle, features, queue,
      unused[3];
  SubmissionOffsets submission;
  CompletionOffsets completion;
};
static_assert(sizeof(Parameters) == 120);

struct TimeSpan {
  std::int64_t seconds;
  long long nanoseconds;
};

struct WaitArgument {
  std::uint64_t signals;
  std::uint32_t signal_bytes;
  std::uint32_t minimum_wait;
  std::uint64_t timeout;  ///< Address of a TimeSpan.
};
static_assert(sizeof(WaitArgument) == 24);

inline constexpr std::uint8_t kSyncFile = 3;
inline constexpr std::uint8_t kRead = 22;
inline constexpr std::uint8_t kWrite = 23;
inline constexpr std::uint32_t kDataOnly = 1;  ///< Of a sync: fdatasync.

inline constexpr std::uint32_t kSetupClamp = 1u << 4;
inline constexpr std::uint32_t kFeatureSingleMap = 1u << 0;
inline constexpr std::uint32_t kFeatureNoDrop = 1u << 1;
inline constexpr std::uint32_t kFeatureWaitArgument = 1u << 8;  ///< Linux 5.11: waits with a timeout.
inline constexpr std::uint32_t kEnterGetEvents = 1u << 0;
inline constexpr std::uint32_t kEnterWaitArgument = 1u << 3;

inline constexpr std::int64_t kRingsOffset = 0;
inline constexpr std::int64_t kEntriesOffset = 0x10000000;

}  // namespace bamquery::uring
