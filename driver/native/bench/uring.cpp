#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <system_error>
#include <vector>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/bench/block.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/executors/io_uring.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kNapNs = 100'000'000;  // between looks at `stop`, where a disk does not answer

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (number_ < 0) throw system_error(path, "cannot be opened");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }
  int number() const { return number_; }

 private:
  int number_;
};

// What is in flight from one buffer.
struct Pending {
  std::uint64_t block;
  std::uint64_t start_ns;
  bool writes;
};

// One client's ring, with a buffer for each operation in flight.
class UringClient {
 public:
  UringClient(const BlockJob& job, std::uint32_t client, const std::string& path, bool direct,
              WrittenBlocks& written, ClientTally& tally)
      : job_(job),
        client_(client),
        written_(written),
        tally_(tally),
        file_(path, (job.write_share > 0 ? O_RDWR : O_RDONLY) | (direct ? O_DIRECT : 0)),
        memory_(allocate_aligned(std::size_t{job.block_bytes} * job.depth)),
        pending_(job.depth),
        ring_(job.depth) {}

  void run(const std::atomic<bool>& stop) {
    for (std::uint32_t place = 0; place < job_.depth; ++place) ask(place);
    while (ring_.in_flight() > 0) {
      ring_.wait(kNapNs);
      const std::size_t count = ring_.reap(completions_);
      const bool over = stop.load(std::memory_order_relaxed);  // only says to hurry
      for (std::size_t i = 0; i < count; ++i) {
        const auto place = static_cast<std::uint32_t>(completions_[i].tag);
        finish(place, completions_[i].result);
        if (!over && tally_.errors < kMostErrors) ask(place);
      }
    }
  }

 private:
  static constexpr std::uint64_t kMostErrors = 1000;  // a disk that is gone answers fast, and for ever

  std::span<std::byte> buffer(std::uint32_t place) const {
    return {memory_.get() + std::size_t{place} * job_.block_bytes, job_.block_bytes};
  }

  void ask(std::uint32_t place) {
    const bool writes = job_.writes(client_, asked_);
    const std::uint64_t block = job_.pattern.block(client_, asked_++);
    const auto offset = static_cast<std::int64_t>(job_.offset(block));
    if (writes) job_.prepare(buffer(place), block);
    pending_[place] = {block, now_ns(), writes};
    // There is room: no more places than entries.
    if (writes) {
      ring_.write(file_.number(), buffer(place).data(), job_.block_bytes, offset, place);
    } else {
      ring_.read(file_.number(), buffer(place).data(), job_.block_bytes, offset, place);
    }
  }

  void finish(std::uint32_t place, std::int32_t result) {
    const Pending& done = pending_[place];
    if (result != static_cast<std::int32_t>(job_.block_bytes)) {
      tally_.fail((done.writes ? "write" : "read") + std::string(" at byte ") +
                  std::to_string(job_.offset(done.block)) + ": " +
                  (result < 0 ? std::generic_category().message(-result) : "too few bytes"));
      return;
    }
    tally_.add(job_.block_bytes, now_ns() - done.start_ns);
    if (done.writes) {
      written_.mark(done.block);
    } else {
      job_.compare(buffer(place), done.block, tally_);
    }
  }

  const BlockJob& job_;
  std::uint32_t client_;
  WrittenBlocks& written_;
  ClientTally& tally_;
  Descriptor file_;
  AlignedBuffer memory_;
  std::vector<Pending> pending_;
  IoUring ring_;  // last, so that it waits for what is in flight before memory and file go
  std::array<IoUring::Completion, 64> completions_{};
  std::uint64_t asked_ = 0;
};

}  // namespace

BenchClients::Work uring_work(const BlockJob& job, const std::string& path, bool direct,
                              WrittenBlocks& written) {
  return
      [job, path, direct, &written](std::uint32_t client, const std::atomic<bool>& stop, ClientTally& tally) {
        UringClient(job, client, path, direct, written, tally).run(stop);
      };
}

}  // namespace bamquery
