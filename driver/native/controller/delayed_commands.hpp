// Commands that were fetched and are not to be executed yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "driver/core/nvme.hpp"
#include "driver/native/controller/faults.hpp"

namespace bamquery {

/// Of one queue. Takes memory only once there are some.
class HeldCommands {
 public:
  bool empty() const { return waiting_.empty() && behind_.empty(); }

  void hold_until(std::uint64_t due_ns, const SubmissionEntry& entry, const Effect& effect) {
    waiting_.push_back({due_ns, keep(entry, effect)});
    std::ranges::push_heap(waiting_, std::greater<>{}, &Due::ns);
  }

  /// Until the queue has fetched `ordinal` commands, or `due_ns`.
  void hold_behind(std::uint64_t ordinal, std::uint64_t due_ns, const SubmissionEntry& entry,
                   const Effect& effect) {
    behind_.push_back({ordinal, due_ns, keep(entry, effect)});
  }

  /// Takes one whose time has come.
  bool take_due(std::uint64_t now_ns, std::uint64_t ordinal, SubmissionEntry& entry, Effect& effect) {
    if (!waiting_.empty() && waiting_.front().ns <= now_ns) {
      std::ranges::pop_heap(waiting_, std::greater<>{}, &Due::ns);
      give(waiting_.back().place, entry, effect);
      waiting_.pop_back();
      return true;
    }
    for (Behind& held : behind_) {
      if (held.ordinal > ordinal && held.due_ns > now_ns) continue;
      give(held.place, entry, effect);
      held = behind_.back();
      behind_.pop_back();
      return true;
    }
    return false;
  }

  /// Takes any.
  bool take(SubmissionEntry& entry, Effect& effect) {
    constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();
    return take_due(kEver, kEver, entry, effect);
  }

  std::uint64_t next_due_ns() const {
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    if (!waiting_.empty()) next = waiting_.front().ns;
    for (const Behind& held : behind_) next = std::min(next, held.due_ns);
    return next;
  }

 private:
  struct Command {
    SubmissionEntry entry;
    Effect effect;
  };
  struct Due {
    std::uint64_t ns;
    std::uint32_t place;
  };
  struct Behind {
    std::uint64_t ordinal;
    std::uint64_t due_ns;
    std::uint32_t place;
  };

  std::uint32_t keep(const SubmissionEntry& entry, const Effect& effect) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(commands_.size()));
      commands_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    commands_[place] = {entry, effect};
    return place;
  }
  void give(std::uint32_t place, SubmissionEntry& entry, Effect& effect) {
    entry = commands_[place].entry;
    effect = commands_[place].effect;
    free_.push_back(place);
  }

  std::vector<Command> commands_;
  std::vector<std::uint32_t> free_;
  std::vector<Due> waiting_;  ///< A heap, the first to come on top.
  std::vector<Behind> behind_;
};

}  // namespace bamquery
