// An NVMe controller in a thread: registers, admin queue, I/O queues and an IOMMU over plain memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "driver/core/nvme.hpp"
#include "driver/native/nvme/nvme_device.hpp"

namespace bamquery::test {

struct FakeNamespace {
  std::uint32_t block_bytes = 512;
  std::uint64_t blocks = 8192;
  std::uint16_t metadata = 0;
  std::uint8_t protection = 0;
  bool write_protected = false;
};

struct FakeOptions {
  std::uint32_t most_entries = 256;
  std::uint32_t stride = 0;
  std::uint8_t ready_timeout = 2;  ///< CAP.TO, of 500 ms.
  std::uint8_t transfer_shift = 5;
  std::uint32_t queue_pairs = 16;
  bool shadow_doorbells = false;
  bool namespace_lists = true;
  std::vector<FakeNamespace> namespaces = {{}};
  std::vector<IovaRange> ranges = {{0, (1ull << 39) - 1}};
  std::size_t bar_bytes = 16384;
  std::byte* bar = nullptr;  ///< Memory of the registers; none: its own.
};

/// What goes wrong, from the moment that it is set.
struct FakeFaults {
  std::atomic<bool> never_ready{false};
  std::atomic<bool> fatal_when_enabled{false};
  std::atomic<bool> stays_ready{false};   ///< Whatever CC.EN says, until the function is reset.
  std::atomic<bool> has_no_reset{false};  ///< The function.
  std::atomic<bool> mute_admin{false};    ///< Commands of the admin queue are never answered.
  std::atomic<bool> mute{false};  ///< Commands of I/O queues are not executed, but for deletion's sake.
  std::atomic<bool> forgets_to_abort{false};  ///< What is held lands even after deletion, and after a reset.
  std::atomic<bool> fuzz_admin{false};        ///< Completions of the admin queue are of random bits.
  std::atomic<bool> fuzz_io{false};           ///< Those of I/O queues are, now and then.
};

class FakeNvme {
 public:
  explicit FakeNvme(FakeOptions options = {}, std::uint32_t seed = 1);
  ~FakeNvme();

  /// A process's hold on it; one at a time.
  std::unique_ptr<NvmeDevice> device(const std::string& name = "0000:01:00.0");

  /// Changes what Identify says, after it was made.
  std::function<void(std::uint8_t what, std::span<std::byte> page)> change_identify;

  FakeFaults faults;
  std::vector<std::vector<std::byte>> contents;  ///< By namespace.

  /// Reports an event, if somebody awaits one.
  void report(std::uint32_t result) { event_.store(result); }
  /// Makes it ready with rings that nobody has, as an owner that was killed leaves it.
  void leave_running();
  /// As if the device were pulled out.
  void pull_out();
  /// Executes what was held; they land where they were to land, if the IOMMU lets them.
  void release_held() { release_.store(true); }

  std::atomic<std::uint64_t> commands{0};  ///< Of I/O queues, executed.
  std::atomic<std::uint64_t> writes{0};    ///< Write commands that came.
  std::atomic<std::uint64_t> held{0};      ///< Commands at hand that are not executed.
  std::atomic<std::uint64_t> blocked{0};   ///< Accesses that the IOMMU did not let through.
  std::atomic<std::uint64_t> resets{0};    ///< Of the function.
  std::atomic<std::uint64_t> shutdowns{0};
  std::atomic<std::uint64_t> doorbell_writes{0};  ///< Of I/O queues, as far as they are told apart.
  std::atomic<std::uint64_t> awaited_events{0};
  std::atomic<std::uint64_t> unmapped{0};  ///< Mappings that somebody ended.

  std::size_t mappings() const;
  bool ready() const { return (register_at(0x1c) & 1) != 0; }
  bool enabled() const { return (register_at(0x14) & 1) != 0; }

 private:
  friend class FakeDevice;

  struct Mapping {
    std::byte* at;
    std::uint64_t bytes;
    QueueAccess access;
  };
  struct Queue {
    std::uint64_t submissions = 0, completions = 0;
    std::uint32_t depth = 0;  ///< 0: there is none.
    std::uint32_t submission_depth = 0;
    std::uint32_t head = 0, tail = 0;        ///< Of the submission ring.
    std::uint32_t posted = 0, consumed = 0;  ///< Of the completion ring; posted runs freely.
    bool awake = false;                      ///< With shadow doorbells: looks at them.
    std::deque<std::pair<std::uint16_t, std::pair<Status, std::uint32_t>>> answers;
    std::vector<SubmissionEntry> held;
  };

  std::uint32_t register_at(std::size_t at) const {
    return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(bar_ + at), __ATOMIC_ACQUIRE);
  }
  void set_register(std::size_t at, std::uint32_t value) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + at), value, __ATOMIC_RELEASE);
  }
  std::optional<std::uint32_t> written(std::uint32_t offset);
  std::byte* reach(std::uint64_t iova, std::uint64_t bytes, bool to_write);
  bool copy(std::uint64_t prp1, std::uint64_t prp2, std::byte* bytes, std::uint64_t count, bool to_host);

  void run();
  void look_at_configuration();
  void forget_queues();
  void look_at_queue(std::uint32_t number);
  void fetch(std::uint32_t number);
  void execute_admin(const SubmissionEntry& entry);
  void identify(const SubmissionEntry& entry);
  void answer(std::uint32_t number, std::uint16_t id, Status status, std::uint32_t result = 0);
  void post(std::uint32_t number);
  Status execute(const SubmissionEntry& entry);
  void settle_held();

  FakeOptions options_;
  std::mt19937 random_;
  std::byte* bar_;
  mutable std::mutex mutex_;  ///< Of mappings and the bus.
  std::map<std::uint64_t, Mapping> mappings_;
  bool bus_master_ = false;
  std::atomic<bool> reset_{false};
  std::atomic<bool> gone_{false};
  std::atomic<bool> release_{false};
  std::atomic<std::uint32_t> event_{0};
  std::vector<Queue> queues_;
  std::uint64_t shadows_ = 0, events_ = 0;
  std::optional<std::uint16_t> event_id_;
  std::vector<SubmissionEntry> zombies_;  ///< Of queues that are deleted.
  bool enabled_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace bamquery::test
