// What a software controller does wrong on demand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "driver/core/nvme.hpp"

namespace bamquery {

enum class FaultKind : std::uint8_t {
  kNone,
  kError,      ///< Not executed; answered with a status.
  kDelay,      ///< Executed and answered later: after its deadline, if that is sooner.
  kReorder,    ///< Executed and answered behind up to `window` commands that came after it in its queue.
  kLose,       ///< Executed, never answered.
  kWrongHead,  ///< Executed; the completion's submission queue head is no ring position.
  kTear,       ///< Of a write, only the first bytes (of a direct file: blocks) are written; then a status,
               ///< or success.
};

inline constexpr std::uint32_t kFaultKinds = 7;

/// Which commands go wrong, and how.
struct FaultRule {
  FaultKind kind = FaultKind::kError;
  std::uint32_t nsid = 0;          ///< 0: any
  std::optional<Opcode> opcode{};  ///< None: any, flushes too
  std::uint64_t first_lba = 0;     ///< Commands that touch any of these blocks; a flush touches all.
  std::uint64_t blocks = ~0ull;
  double probability = 1;            ///< Of each command that fits.
  std::uint64_t most = ~0ull;        ///< How often at most.
  Status status = status::kSuccess;  ///< kError, kTear
  std::uint64_t delay_ns = 0;        ///< kDelay
  std::uint32_t window = 1;  ///< kReorder; where no commands follow, it waits no longer than kReorderNs.
  std::uint32_t bytes = 0;   ///< kTear
};

inline constexpr std::uint64_t kReorderNs = 200'000;

/// What becomes of one command.
struct Effect {
  FaultKind kind = FaultKind::kNone;
  Status status = status::kSuccess;
  std::uint32_t behind = 0;  ///< kReorder: how many commands it lets pass.
  std::uint32_t bytes = 0;
  std::uint64_t delay_ns = 0;
};

/// Rules and the dice. The n-th command of a queue meets the same fate in every run with the same seed,
/// unless queues share a rule that fires a limited number of times.
class FaultPlan {
 public:
  /// Throws std::invalid_argument for a rule that cannot be.
  FaultPlan(std::vector<FaultRule> rules, std::uint64_t seed);

  /// The first rule that fits, and whose dice say so, decides.
  Effect decide(const SubmissionEntry& entry, std::uint16_t queue, std::uint64_t ordinal);

  /// How often each rule fired.
  std::vector<std::uint64_t> fired() const;

 private:
  std::vector<FaultRule> rules_;
  std::uint64_t seed_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> fired_;
};

}  // namespace bamquery
