// The queue pair by which a controller itself is told what to do.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "driver/core/nvme.hpp"
#include "driver/native/nvme/admin_commands.hpp"
#include "driver/native/nvme/dma_space.hpp"
#include "driver/native/nvme/registers.hpp"

namespace bamquery {

/// What a controller said unasked (NVM Express Base Specification 2.0, figures 147 and 148).
struct ControllerEvent {
  std::uint8_t type = 0;
  std::uint8_t information = 0;
  std::uint8_t log_page = 0;
};

struct AdminCounts {
  std::uint64_t commands = 0;  ///< Besides those that await events.
  std::uint64_t errors = 0;    ///< Of those, answers other than success.
  std::uint64_t missed = 0;    ///< Of those, commands that were not answered in time.
  std::uint64_t aborts = 0;    ///< Commands that the controller was asked to abort.
  std::uint64_t strays = 0;    ///< Completions of commands that nobody had given.
  std::uint64_t events = 0;
};

/// One command after the other, each awaited. Once one was not answered in time the queue is stuck, and takes
/// commands only after the controller was reset: what the old one may still write is not to be taken for the
/// next one's answer. Any thread may call.
class AdminQueue {
 public:
  static constexpr std::uint32_t kDepth = 64;

  struct Answer {
    Status status;
    std::uint32_t result;  ///< Dword 0 of the completion.
  };

  /// All of them outlive the queue. `name` is for messages.
  AdminQueue(Registers& registers, DmaSpace& space, std::string name);

  /// Addresses of the rings.
  std::uint64_t submissions() const { return submissions_.iova(); }
  std::uint64_t completions() const { return completions_.iova(); }

  /// Makes the rings fresh, for a controller that is disabled.
  void renew();
  /// Where the queue's doorbells are written to as well; nullptr: nowhere. Some controllers look at their
  /// shadow doorbells for this queue, too, from the command on that tells of them: those must be right
  /// before. `stride` is CAP.DSTRD.
  void use_doorbells(std::uint32_t stride, std::byte* shadows);

  /// Gives a command and waits for its answer, whatever its status. At the deadline it is aborted. NvmeError:
  /// there is no answer, since time ran out, or since the controller failed or is gone.
  Answer execute(const AdminCommand& command, Deadline deadline);

  /// A command that answers with a page, which `look` sees. NvmeError.
  Answer execute(const std::function<AdminCommand(std::uint64_t page)>& command, Deadline deadline,
                 const std::function<void(std::span<const std::byte>)>& look);

  /// From now on the controller may report events.
  void await_events();
  /// Takes what has come, and lets reported events come again.
  void acknowledge_events(Deadline deadline);

  bool stuck() const;
  AdminCounts counts() const;
  std::optional<ControllerEvent> last_event() const;

 private:
  static constexpr std::uint16_t kEventId = 0xe000;  ///< Of the command that awaits events.
  static constexpr std::uint16_t kAbortId = 0xd000;
  static constexpr std::uint16_t kLastId = 0x7fff;  ///< Of other commands.

  // All with mutex_ held.
  void submit(const AdminCommand& command, std::uint16_t command_id);
  bool take(CompletionEntry& completion);
  void set_shadow(std::uint32_t offset, std::uint32_t value) const;
  void take_event(std::uint32_t result);
  std::optional<Answer> await(std::uint16_t command_id, Deadline deadline);
  Answer execute_locked(const AdminCommand& command, Deadline deadline);
  [[noreturn]] void fail(const AdminCommand& command, const std::string& why, Status status);
  void check_controller(const AdminCommand& command);

  Registers& registers_;
  std::string name_;
  DmaPages submissions_;
  DmaPages completions_;
  DmaPages data_;  ///< Of commands that answer with a page.

  mutable std::mutex mutex_;
  std::uint32_t stride_ = 0;
  std::byte* shadows_ = nullptr;
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;  ///< Runs freely: its bit above the place tells the phase.
  std::uint16_t next_id_ = 0;
  bool stuck_ = false;
  bool awaits_events_ = false;
  AdminCounts counts_;
  std::optional<ControllerEvent> last_event_;
  std::optional<ControllerEvent> unread_event_;
};

}  // namespace bamquery
