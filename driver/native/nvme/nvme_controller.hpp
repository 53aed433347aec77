// A drive as the controller of a QueueMemory's queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "driver/native/controller/controller.hpp"
#include "driver/native/nvme/doorbell_forwarder.hpp"
#include "driver/native/nvme/nvme_drive.hpp"
#include "driver/native/own_process.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

/// How the drive hears of new commands.
enum class DoorbellKind : std::uint8_t {
  kAutomatic,  ///< Shadows where the drive offers them, which only imitated ones do; else registers.
  kRegisters,  ///< Who issues writes to the drive's registers.
  kShadow,     ///< Doorbells in memory that the drive looks at; who waits tells it where it asks for that.
  kForwarded,  ///< Doorbells in memory; who waits, or a thread, passes them on.
};

/// Queue pairs of a drive over the rings and landing buffers of one QueueMemory; a drive may have several
/// such, as those of namespaces whose LBAs differ in size. Any thread may call.
class NvmeController final : public Controller {
 public:
  /// Maps the memory for the drive, read-only as far as can be if the drive is, places it, and creates the
  /// queue pairs. Its rings must be fresh; it outlives the controller. std::invalid_argument says what of its
  /// shape the drive cannot do; StorageError, NvmeError.
  NvmeController(std::shared_ptr<NvmeDrive> drive, QueueMemory& memory,
                 DoorbellKind doorbells = DoorbellKind::kAutomatic);
  /// Stops. In a process that was forked off: leaves drive and memory alone, which are the parent's.
  ~NvmeController() override;

  /// Of namespaces that the driver takes, and whose LBAs are of the memory's block size.
  std::optional<NamespaceShape> shape_of(std::uint32_t nsid) const override;

  /// Passes doorbells on, where that is the callers' business.
  bool service(std::uint32_t pair, std::uint64_t wait_ns = 0) override;
  void wake() override;

  /// Deletes the queue pairs. Commands that the drive has not ended by then end, and none reaches memory any
  /// more. If the drive does not do that it is reset, which ends the commands of all who use it.
  bool stop(Deadline deadline) override;

  void recreate_queues() override;

  NvmeDrive& drive() const { return *drive_; }
  DoorbellKind doorbell_kind() const { return kind_; }
  /// In words, for people.
  std::string doorbell_text() const;
  std::uint32_t first_queue() const override { return numbers_.first; }

  /// How often doorbell registers were written for the queue pairs; nothing where who issues does it.
  std::optional<std::uint64_t> doorbell_writes() const;

 private:
  void change_activity(int by) override;
  void create_queues();

  /// Queue numbers, for as long as they are ours.
  struct Numbers {
    Numbers(NvmeDrive& of, std::uint32_t wanted) : drive(of), first(of.take_queues(wanted)), count(wanted) {}
    ~Numbers() {
      if (process.is_ours()) drive.give_back_queues(first, count);
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

    NvmeDrive& drive;
    std::uint16_t first;
    std::uint32_t count;
    OwnProcess process;
  };

  std::shared_ptr<NvmeDrive> drive_;
  QueueMemory& memory_;
  Numbers numbers_;
  DmaMapping mapping_;
  DoorbellKind kind_;
  std::unique_ptr<DoorbellForwarder> forwarder_;  ///< Null where who issues writes to registers.

  OwnProcess process_;
  std::mutex mutex_;  ///< One stop() or recreate_queues() at a time.
  bool running_ = false;
  std::uint64_t generation_ = 0;  ///< Of the drive, when the queue pairs were created.
};

}  // namespace bamquery
