// Reads and writes that the kernel does while we go on: io_uring by its system calls, without liburing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "driver/native/executors/io_uring_abi.hpp"

namespace bamquery {

/// This machine, or this process, may not use io_uring; the message says why and what would allow it.
class IoUringUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One ring. One thread at a time may use it, not always the same one. Buffers and descriptors of what is in
/// flight must live until its completion was reaped; the destructor waits for all that is.
class IoUring {
 public:
  struct Completion {
    std::uint64_t tag;
    std::int32_t result;  ///< Bytes moved, or a negative error number.
  };

  /// Room for at least `entries` operations in flight. Throws IoUringUnavailable.
  explicit IoUring(std::uint32_t entries);
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;
  ~IoUring();

  /// Most operations in flight; completions of so many always find room.
  std::uint32_t capacity() const noexcept { return entries_count_; }
  /// Prepared or submitted, and not yet reaped.
  std::uint32_t in_flight() const noexcept { return in_flight_; }

  // Each prepares one operation; false where `capacity` are in flight. The kernel learns of it in `submit` or
  // `wait`.
  bool read(int file, std::byte* to, std::uint32_t length, std::int64_t offset, std::uint64_t tag);
  bool write(int file, const std::byte* from, std::uint32_t length, std::int64_t offset, std::uint64_t tag);
  /// fdatasync, of the writes that were reaped before.
  bool sync_data(int file, std::uint64_t tag);

  /// Tells the kernel of all that was prepared. What it has no room for now goes with a later call.
  void submit() { enter(0, nullptr); }

  /// Submits, then sleeps until a completion is there, `timeout_ns` are over or a signal came.
  void wait(std::uint64_t timeout_ns);

  /// Takes completions, as many as there are and fit; asks nothing of the kernel.
  std::size_t reap(std::span<Completion> into);

 private:
  bool prepare(std::uint8_t opcode, int file, std::uint64_t address, std::uint32_t length,
               std::int64_t offset, std::uint32_t flags, std::uint64_t tag);
  void enter(std::uint32_t minimum, const uring::TimeSpan* timeout);
  bool completion_ready() const;
  void release() noexcept;

  int descriptor_ = -1;
  std::byte* rings_ = nullptr;
  std::size_t rings_bytes_ = 0;
  uring::SubmissionEntry* entries_ = nullptr;
  std::size_t entries_bytes_ = 0;
  std::uint32_t entries_count_ = 0;
  std::uint32_t* submission_head_ = nullptr;
  std::uint32_t* submission_tail_ = nullptr;
  std::uint32_t* completion_head_ = nullptr;
  std::uint32_t* completion_tail_ = nullptr;
  uring::CompletionEntry* completions_ = nullptr;
  std::uint32_t completion_mask_ = 0;
  std::uint32_t prepared_ = 0;  ///< Not yet taken by the kernel.
  std::uint32_t in_flight_ = 0;
};

/// Why io_uring cannot be used here, or an empty string. Asks the kernel anew each time.
std::string io_uring_refusal();

}  // namespace bamquery
