// Tells a drive's registers what was written to doorbells in memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/native/nvme/nvme_drive.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

/// Who waits for a command looks at the doorbells of its pair; a thread looks at all of them while somebody
/// has declared activity, as a GPU's threads cannot. Any thread may call.
///
/// Shadow doorbells: the drive looks at them by itself while it is busy, and says of which value it wants to
/// be told. Of a pair whose shadows were left alone for long, it is told again: what is told and what is
/// asked for may pass each other in a controller that orders them less well than it should.
///
/// Others: the drive is told of all values, but of a few more commands only once it has done half of what it
/// has, or some moments have passed; and of completions that were taken, when it needs the room.
class DoorbellForwarder {
 public:
  /// `shadows` null: the memory's doorbells are no shadows. The others outlive it.
  DoorbellForwarder(NvmeDrive& drive, QueueMemory& memory, std::uint16_t first_queue,
                    ShadowDoorbells* shadows);
  ~DoorbellForwarder();
  DoorbellForwarder(const DoorbellForwarder&) = delete;
  DoorbellForwarder& operator=(const DoorbellForwarder&) = delete;

  /// True if something had to be told. Nothing while another thread is at that pair.
  bool look(std::uint32_t pair);
  bool look();

  void change_activity(int by);

  /// Nothing is told from here on, until renew(): the pairs are deleted, or about to be.
  void stop();
  /// All pairs are new, with doorbells of zeros.
  void renew();

  /// Doorbells written to registers.
  std::uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }

 private:
  /// Counters run freely; their low bits are places in the ring.
  struct Pair {
    std::atomic<bool> taken{false};
    std::uint32_t tail = 0, head = 0;            ///< That the drive was told of.
    std::uint32_t seen_tail = 0, seen_head = 0;  ///< As last seen in memory.
    std::uint64_t waits_since = 0;  ///< Something is held back, or not asked for, since then; 0: nothing.
  };

  bool forward(std::uint32_t pair);
  bool forward_shadows(Pair& pair, std::uint16_t queue);
  bool forward_all(Pair& pair, std::uint16_t queue, std::uint32_t tail, std::uint32_t head);
  void ring(std::uint32_t offset, std::uint32_t counter);
  void run();

  NvmeDrive& drive_;
  QueueMemory& memory_;
  std::uint16_t first_queue_;
  ShadowDoorbells* shadows_;
  std::uint32_t stride_;  ///< Of the drive's registers.
  std::uint32_t depth_;
  std::unique_ptr<Pair[]> pairs_;
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<bool> stopped_{true};

  std::mutex mutex_;
  std::condition_variable rouse_;
  int activity_ = 0;
  bool ending_ = false;
  std::thread thread_;  ///< Started with the first activity.
};

}  // namespace bamquery
