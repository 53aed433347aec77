// What serves the queue pairs of a QueueMemory: threads of this process, or a drive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "driver/core/platform.hpp"

namespace bamquery {

/// What a controller's clients know of a namespace.
struct NamespaceShape {
  std::uint32_t nsid = 0;
  std::uint32_t block_bytes = 512;  ///< Of an LBA.
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  ///< Of data: less than the blocks have where a file's last block is not whole.
  bool writable = false;
  bool volatile_cache = true;  ///< What was written is durable only after a flush.
  std::string name;            ///< A file's path, or a drive's address and nsid; may be empty.
};

/// Clients drive the rings and ask here for what rings do not say. All members may be called from any thread,
/// except as noted.
class Controller {
 public:
  /// While one lives, whoever has to look for commands does so at least every millisecond. It may outlive no
  /// controller.
  class Activity {
   public:
    explicit Activity(Controller& controller) : controller_(&controller) { controller_->change_activity(1); }
    Activity(Activity&& other) noexcept : controller_(std::exchange(other.controller_, nullptr)) {}
    Activity& operator=(Activity&&) = delete;
    ~Activity() { end(); }
    void end() {
      if (controller_ != nullptr) std::exchange(controller_, nullptr)->change_activity(-1);
    }

   private:
    Controller* controller_;
  };

  Controller() = default;
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  virtual ~Controller() = default;

  /// None if there is no namespace of that number.
  virtual std::optional<NamespaceShape> shape_of(std::uint32_t nsid) const = 0;

  /// Queue id of its memory's first pair; those of the others follow.
  virtual std::uint32_t first_queue() const { return 1; }

  /// Who waits for a command of a pair (its queue id less first_queue()) calls it: carries out, or passes on,
  /// what was submitted there, in the caller's thread. May sleep up to `wait_ns` where that has to wait for
  /// somebody else. False: there was nothing to do, or this is not the caller's business, since threads or a
  /// drive see to it.
  virtual bool service(std::uint32_t pair, std::uint64_t wait_ns = 0) = 0;

  /// Before a launch: a GPU's stores wake nobody. Those who look for commands look now.
  virtual void wake() = 0;
  [[nodiscard]] Activity activity() { return Activity(*this); }

  /// Answers all that was submitted, or sees to it that nothing of it lands any more. False if that has not
  /// come about at the deadline.
  virtual bool stop(Deadline deadline) = 0;

  /// Deletes all queue pairs and creates them again, with fresh rings: after a protocol error, and to have
  /// slots back whose commands were lost. Stopped only; pools must be made anew. std::logic_error otherwise.
  virtual void recreate_queues() = 0;

 private:
  virtual void change_activity(int by) = 0;
};

}  // namespace bamquery
