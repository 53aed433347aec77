// The seam between a software controller and what carries out its commands on files past the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "driver/core/nvme.hpp"

namespace bamquery {

/// One command that was found valid: a read, a write or a flush of one file, from or into memory that lies in
/// one piece. A command whose pages do not is several of these.
struct AsyncOperation {
  Opcode opcode;
  int file;                 ///< Opened with O_DIRECT.
  std::int64_t file_bytes;  ///< What it has to have: reads get zeros behind that, writes must end before.
  std::int64_t offset;      ///< A multiple of the alignment that the file's device asks for; so is `bytes`.
  std::uint32_t bytes;
  std::byte* memory;  ///< Aligned to 512 bytes at least, and to a page where the device wants that.
  std::uint64_t tag;  ///< Comes back with the outcome.
};

struct AsyncOutcome {
  std::uint64_t tag;
  Status status;
};

/// Carries out operations while the controller goes on. Used by one thread at a time, not always the same
/// one, so a controller has one for each of its threads, or for each queue where those who wait do the work:
/// then nobody sleeps for a completion that somebody else has taken.
///
/// Files and memory must live until the outcome was taken.
class AsyncExecutor {
 public:
  virtual ~AsyncExecutor() = default;

  /// Takes an operation; false where as many are in flight as it can have: then
  /// `reap` makes room. It may begin at once or with the next `reap`.
  virtual bool start(const AsyncOperation& operation) = 0;

  /// Begins what was started, all with one request to the kernel, and takes outcomes, in any order. Where
  /// there are none, and something is in flight, sleeps for one up to `wait_ns`; 0 only looks.
  virtual std::size_t reap(std::span<AsyncOutcome> outcomes, std::uint64_t wait_ns) = 0;

  /// Started, and not yet reaped.
  virtual std::uint32_t in_flight() const = 0;

  /// How: "io_uring", or "preadv: " and why not io_uring.
  virtual std::string path() const = 0;
};

/// Makes an executor for up to `depth` operations in flight.
using AsyncExecutorFactory = std::function<std::unique_ptr<AsyncExecutor>(std::uint32_t depth)>;

}  // namespace bamquery
