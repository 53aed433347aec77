#include "driver/native/executors/direct_executor.hpp"

#include <array>
#include <string>
#include <vector>

#include "driver/native/executors/file_transfer.hpp"
#include "driver/native/executors/io_uring.hpp"
#include "driver/native/executors/thread_executor.hpp"

namespace bamquery {
namespace {

class UringExecutor final : public AsyncExecutor {
 public:
  explicit UringExecutor(std::uint32_t depth) : ring_(depth), transfers_(ring_.capacity()) {
    for (std::uint32_t i = ring_.capacity(); i-- > 0;) free_.push_back(i);
  }

  bool start(const AsyncOperation& operation) override {
    if (free_.empty()) return false;
    FileTransfer transfer(operation);
    if (const auto status = transfer.refused()) {
      ended_.push_back({operation.tag, *status});
      return true;
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    transfers_[place] = transfer;
    ask(place);
    return true;
  }

  std::size_t reap(std::span<AsyncOutcome> outcomes, std::uint64_t wait_ns) override {
    std::size_t count = 0;
    for (; count < outcomes.size() && !ended_.empty(); ended_.pop_back()) outcomes[count++] = ended_.back();
    if (wait_ns > 0 && count == 0 && ring_.in_flight() > 0) {
      ring_.wait(wait_ns);
    } else {
      ring_.submit();
    }
    std::array<IoUring::Completion, 64> completions;
    while (count < outcomes.size()) {
      const std::size_t room = std::min(outcomes.size() - count, completions.size());
      const std::size_t found = ring_.reap(std::span(completions).first(room));
      for (std::size_t i = 0; i < found; ++i) {
        const auto place = static_cast<std::uint32_t>(completions[i].tag);
        if (const auto status = transfers_[place].advance(completions[i].result)) {
          outcomes[count++] = {transfers_[place].operation().tag, *status};
          free_.push_back(place);
        } else {
          ask(place);  // the kernel learns of it in the next call
        }
      }
      if (found < room) break;
    }
    return count;
  }

  std::uint32_t in_flight() const override {
    return static_cast<std::uint32_t>(transfers_.size() - free_.size() + ended_.size());
  }

  std::string path() const override { return "io_uring"; }

 private:
  // There is room: no more transfers than the ring holds.
  void ask(std::uint32_t place) {
    const FileTransfer& transfer = transfers_[place];
    const int file = transfer.operation().file;
    switch (transfer.operation().opcode) {
      case Opcode::kRead:
        ring_.read(file, transfer.memory(), transfer.bytes(), transfer.offset(), place);
        break;
      case Opcode::kWrite:
        ring_.write(file, transfer.memory(), transfer.bytes(), transfer.offset(), place);
        break;
      case Opcode::kFlush:
        ring_.sync_data(file, place);
        break;
    }
  }

  IoUring ring_;
  std::vector<FileTransfer> transfers_;  ///< By place, the ring's tag.
  std::vector<std::uint32_t> free_;
  std::vector<AsyncOutcome> ended_;
};

}  // namespace

std::unique_ptr<AsyncExecutor> make_direct_executor(std::uint32_t depth, DirectPath path) {
  if (path == DirectPath::kThreads) return make_thread_executor(depth, "asked for");
  try {
    return std::make_unique<UringExecutor>(depth);
  } catch (const IoUringUnavailable& error) {
    if (path == DirectPath::kUring) throw;
    return make_thread_executor(depth, error.what());
  }
}

}  // namespace bamquery
