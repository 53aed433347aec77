// An NVMe drive that this process has taken over: its life, its namespaces, and its queues.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/native/nvme/admin_queue.hpp"
#include "driver/native/nvme/dma_space.hpp"
#include "driver/native/nvme/identify.hpp"
#include "driver/native/nvme/nvme_device.hpp"
#include "driver/native/nvme/registers.hpp"
#include "driver/native/nvme/shadow_doorbells.hpp"
#include "driver/native/own_process.hpp"

namespace bamquery {

struct DriveOptions {
  bool writable = false;                              ///< Otherwise it is only read from.
  std::uint64_t command_timeout_ns = 10'000'000'000;  ///< Of commands for the controller itself.
  std::uint32_t queue_pairs = 1024;                   ///< How many the drive is asked for; it may have fewer.
};

/// What its queues may be like.
struct DriveLimits {
  std::uint32_t queue_pairs = 0;
  std::uint32_t queue_depth = 0;     ///< A power of two; smaller ones are allowed, from 2 on.
  std::uint32_t transfer_bytes = 0;  ///< Of a command.
  std::uint32_t doorbell_stride = 0;
  bool needs_contiguous_queues = false;
  bool has_shadow_doorbells = false;
  bool has_memory_buffer = false;
  std::uint64_t ready_timeout_ns = 0;
};

struct DriveStatistics {
  AdminCounts admin;
  std::uint64_t resets = 0;           ///< Besides the one when it was opened.
  std::uint64_t register_writes = 0;  ///< By this process, other than doorbells that are rung without asking.
  double bring_up_seconds = 0;        ///< The last time.
  std::optional<ControllerEvent> last_event;
};

/// Any thread may call. What a drive cannot do, or did not do in time, is an NvmeError with its name.
class NvmeDrive {
 public:
  /// Takes the device over in whatever state a former owner left it, makes it ready and asks what it has.
  static std::shared_ptr<NvmeDrive> open(std::unique_ptr<NvmeDevice> device,
                                         const DriveOptions& options = {});
  /// Deletes what queues there are and shuts the drive down. A process that was forked off leaves it alone.
  ~NvmeDrive();
  NvmeDrive(const NvmeDrive&) = delete;
  NvmeDrive& operator=(const NvmeDrive&) = delete;

  const std::string& name() const { return device_->name(); }
  std::string interface() const { return device_->interface(); }
  bool writable() const { return options_.writable; }
  /// VS: major << 16 | minor << 8 | tertiary.
  std::uint32_t version() const { return version_; }
  const ControllerData& identity() const { return identity_; }
  const DriveLimits& limits() const { return limits_; }
  /// All that are active, with those that are refused.
  const std::vector<NamespaceData>& namespaces() const { return namespaces_; }
  /// Of written blocks, some are durable only after a flush.
  bool volatile_cache() const { return volatile_cache_; }

  DmaSpace& memory() { return space_; }
  Registers& registers() { return registers_; }

  /// Numbers for so many queue pairs, one after the other; the first of them. StorageError: so many are not
  /// free.
  std::uint16_t take_queues(std::uint32_t count);
  void give_back_queues(std::uint16_t first, std::uint32_t count);

  /// Creates a queue pair of a number that was taken.
  void create_queues(std::uint16_t queue, std::uint32_t depth, std::uint64_t submissions,
                     std::uint64_t completions);
  /// Deletes one, whose commands have ended then, and reach no memory. False: it was not gone at the
  /// deadline; a reset is what is left. Nothing if there is none.
  bool delete_queues(std::uint16_t queue, Deadline deadline);

  /// Disables the controller, with all queue pairs, whoever has them: afterwards no command reaches memory.
  /// False: it was not disabled at the deadline.
  bool reset(Deadline deadline);
  /// Makes it ready again if it was reset, without queue pairs.
  void make_ready();
  /// Changes with each reset: what was created before is gone.
  std::uint64_t generation() const;

  /// Doorbells in memory for all queue pairs, from now on and over resets; null if the drive has none, or if
  /// there are queue pairs that do without.
  ShadowDoorbells* use_shadow_doorbells();
  /// Those in use; null if none are.
  ShadowDoorbells* shadow_doorbells() const;

  /// Looks for events, too.
  DriveStatistics statistics();

  /// Ends all use, as its end does: for exits of the process. Nothing if that has been done.
  void shut_down(Deadline deadline) noexcept;

 private:
  NvmeDrive(std::unique_ptr<NvmeDevice> device, const DriveOptions& options);

  void open();
  bool disable(Deadline deadline);
  void enable();
  void identify();
  void find_namespaces();
  NamespaceData find_namespace(std::uint32_t nsid);
  void set_limits();
  bool delete_submissions(Deadline deadline);
  void require_success(const AdminCommand& command, const char* what);
  /// A command of ours may take no longer than others.
  Deadline sooner(Deadline deadline) const {
    const Deadline ours = Deadline::in(options_.command_timeout_ns);
    return deadline.at_ns < ours.at_ns ? deadline : ours;
  }
  AdminQueue::Answer ask(const AdminCommand& command) {
    return admin_.execute(command, Deadline::in(options_.command_timeout_ns));
  }

  DriveOptions options_;
  std::unique_ptr<NvmeDevice> device_;
  OwnProcess process_;
  Registers registers_;
  DmaSpace space_;
  AdminQueue admin_;
  std::unique_ptr<ShadowDoorbells> shadows_;  ///< Once made they stay, since queues' users look at them.

  std::uint32_t version_ = 0;
  ControllerData identity_;
  DriveLimits limits_;
  std::vector<NamespaceData> namespaces_;
  bool volatile_cache_ = true;

  mutable std::mutex mutex_;  ///< Of what follows, and one change of the controller's state at a time.
  std::vector<bool> taken_;   ///< By queue number.
  std::set<std::uint16_t> created_;
  bool ready_ = false;
  bool ended_ = false;
  std::uint64_t generation_ = 0;
  std::uint64_t resets_ = 0;
  double bring_up_seconds_ = 0;
};

}  // namespace bamquery
