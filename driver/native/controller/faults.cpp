#include "driver/native/controller/faults.hpp"

#include <stdexcept>
#include <utility>

#include "driver/core/bench/content.hpp"

namespace bamquery {
namespace {

bool fits(const FaultRule& rule, const SubmissionEntry& entry) {
  if (rule.nsid != 0 && rule.nsid != entry.nsid) return false;
  const auto opcode = static_cast<Opcode>(entry.opcode);
  if (rule.opcode && *rule.opcode != opcode) return false;
  if (rule.kind == FaultKind::kTear && opcode != Opcode::kWrite) return false;
  if (opcode == Opcode::kFlush) return true;
  const std::uint64_t count = std::uint64_t{entry.block_count} + 1;
  const bool before = entry.lba < rule.first_lba && rule.first_lba - entry.lba >= count;
  const bool behind = entry.lba >= rule.first_lba && entry.lba - rule.first_lba >= rule.blocks;
  return !before && !behind;
}

void check(const FaultRule& rule) {
  if (!(rule.probability >= 0 && rule.probability <= 1)) {
    throw std::invalid_argument("a fault's probability is between 0 and 1");
  }
  if (rule.kind == FaultKind::kNone) throw std::invalid_argument("a fault has to do something");
  if (rule.kind == FaultKind::kError && rule.status.ok()) {
    throw std::invalid_argument("an error has a status other than success");
  }
  if (rule.kind == FaultKind::kReorder && rule.window == 0) {
    throw std::invalid_argument("commands are reordered within a window of 1 or more");
  }
}

}  // namespace

FaultPlan::FaultPlan(std::vector<FaultRule> rules, std::uint64_t seed)
    : rules_(std::move(rules)),
      seed_(seed),
      fired_(std::make_unique<std::atomic<std::uint64_t>[]>(rules_.size())) {
  for (const FaultRule& rule : rules_) check(rule);
}

Effect FaultPlan::decide(const SubmissionEntry& entry, std::uint16_t queue, std::uint64_t ordinal) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const FaultRule& rule = rules_[i];
    if (!fits(rule, entry)) continue;
    const std::uint64_t dice = mix_bits(mix_bits(mix_bits(seed_ + i) + queue) + ordinal);
    if (static_cast<double>(dice >> 11) * 0x1p-53 >= rule.probability) continue;
    // Relaxed: nothing but the number is shared.
    if (fired_[i].fetch_add(1, std::memory_order_relaxed) >= rule.most) {
      fired_[i].fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    const auto behind = static_cast<std::uint32_t>(1 + mix_bits(dice) % rule.window);
    return {rule.kind, rule.status, behind, rule.bytes, rule.delay_ns};
  }
  return {};
}

std::vector<std::uint64_t> FaultPlan::fired() const {
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    counts.push_back(fired_[i].load(std::memory_order_relaxed));
  }
  return counts;
}

}  // namespace bamquery
