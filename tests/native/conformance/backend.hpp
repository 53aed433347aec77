// Who serves the rings that are checked: all that checks know of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/native/controller/controller.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery::conformance {

/// A namespace and what lies in it.
struct Space {
  std::uint32_t nsid = 1;
  std::uint32_t block_bytes = 512;
  std::uint64_t blocks = 0;
  bool writable = false;
  /// Blocks from 0 on that hold pattern(contents, lba, word), and that nobody writes to. What those behind
  /// them hold does not matter; checks that write need kScratchBytes there.
  std::uint64_t patterned = 0;
  std::uint64_t contents = 0;
};

inline constexpr std::uint64_t kScratchBytes = 5 << 20;

/// The largest shapes that a backend makes, at the LBA size of its first namespace.
struct Limits {
  std::uint32_t depth = 65536;
  std::uint32_t pairs = 16;
  std::uint32_t transfer_bytes = 2 << 20;
};

/// Queue pairs and their controller, which serves them. Ends them, with all that is in flight, in its
/// destructor.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual QueueMemory& memory() = 0;
  virtual Controller& controller() = 0;

  /// Serves again, after stop() and recreate_queues().
  virtual void restart() {}

  /// Answers commands so much later from now on. False: it cannot, and checks that need it are skipped.
  virtual bool delay(std::uint64_t /*ns*/) { return false; }
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual Limits limits() const = 0;

  /// Checks use the first; some, all whose blocks are as large.
  virtual std::vector<Space> spaces() const = 0;

  /// Queue pairs of this shape, with fresh rings. One session at a time lives. Throws what it likes.
  virtual std::unique_ptr<Session> open(const QueueShape& shape) = 0;
};

}  // namespace bamquery::conformance
