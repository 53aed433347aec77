// Commands for a controller itself (NVM Express Base Specification 2.0, 5).
#pragma once

#include <cstdint>

#include "driver/core/nvme.hpp"

namespace bamquery {

/// Opcodes (figure 138).
enum class AdminOpcode : std::uint8_t {
  kDeleteSubmissions = 0x00,
  kCreateSubmissions = 0x01,
  kGetLogPage = 0x02,
  kDeleteCompletions = 0x04,
  kCreateCompletions = 0x05,
  kIdentify = 0x06,
  kAbort = 0x08,
  kSetFeatures = 0x09,
  kGetFeatures = 0x0a,
  kAsynchronousEvent = 0x0c,
  kDoorbellBuffers = 0x7c,
};

/// Feature identifiers (figure 317).
enum class Feature : std::uint8_t {
  kVolatileWriteCache = 0x06,
  kNumberOfQueues = 0x07,
};

/// What an Identify command returns (CNS, figure 273).
enum class IdentifyWhat : std::uint8_t {
  kNamespace = 0x00,
  kController = 0x01,
  kActiveNamespaces = 0x02,  ///< Numbers above that in the command, 1,024 of them.
  kDescriptors = 0x03,       ///< Of a namespace: its command set, among others.
};

/// As much of an entry as admin commands use.
struct AdminCommand {
  AdminOpcode opcode;
  std::uint32_t nsid = 0;
  std::uint64_t prp1 = 0;
  std::uint64_t prp2 = 0;
  std::uint32_t dword10 = 0;
  std::uint32_t dword11 = 0;

  SubmissionEntry entry(std::uint16_t command_id) const {
    SubmissionEntry made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    made.command_id = command_id;
    made.nsid = nsid;
    made.prp1 = prp1;
    made.prp2 = prp2;
    made.lba = dword10 | static_cast<std::uint64_t>(dword11) << 32;  // where reads have their LBA
    return made;
  }
};

namespace admin {

inline constexpr std::uint32_t kAllNamespaces = 0xffffffffu;

/// `data`: a page.
inline AdminCommand identify(IdentifyWhat what, std::uint32_t nsid, std::uint64_t data) {
  return {AdminOpcode::kIdentify, nsid, data, 0, static_cast<std::uint32_t>(what), 0};
}

/// A ring of `depth` entries in contiguous memory, no interrupts (figures 155, 156).
inline AdminCommand create_completions(std::uint16_t queue, std::uint32_t depth, std::uint64_t ring) {
  return {AdminOpcode::kCreateCompletions, 0, ring, 0, (depth - 1) << 16 | queue, 1};
}

/// Its completions go to the ring of the same number (figures 159, 160).
inline AdminCommand create_submissions(std::uint16_t queue, std::uint32_t depth, std::uint64_t ring) {
  return {AdminOpcode::kCreateSubmissions, 0, ring, 0, (depth - 1) << 16 | queue,
          std::uint32_t{queue} << 16 | 1};
}

inline AdminCommand delete_submissions(std::uint16_t queue) {
  return {AdminOpcode::kDeleteSubmissions, 0, 0, 0, queue, 0};
}
inline AdminCommand delete_completions(std::uint16_t queue) {
  return {AdminOpcode::kDeleteCompletions, 0, 0, 0, queue, 0};
}

inline AdminCommand get_feature(Feature feature) {
  return {AdminOpcode::kGetFeatures, 0, 0, 0, static_cast<std::uint32_t>(feature), 0};
}

/// Asks for so many pairs of I/O queues, 1 to 65,535 (figure 325); the result says how many there are, less
/// one: submission queues in bits 15:0, completion queues in 31:16.
inline AdminCommand set_queue_count(std::uint32_t pairs) {
  return {AdminOpcode::kSetFeatures,      0, 0, 0, static_cast<std::uint32_t>(Feature::kNumberOfQueues),
          (pairs - 1) << 16 | (pairs - 1)};
}

inline AdminCommand abort(std::uint16_t queue, std::uint16_t command_id) {
  return {AdminOpcode::kAbort, 0, 0, 0, std::uint32_t{command_id} << 16 | queue, 0};
}

inline AdminCommand await_event() { return {AdminOpcode::kAsynchronousEvent}; }

/// The first `bytes` of a log page, whose event may come again from then on (figure 196).
inline AdminCommand get_log_page(std::uint8_t page, std::uint32_t bytes, std::uint64_t data) {
  return {AdminOpcode::kGetLogPage, kAllNamespaces, data, 0, (bytes / 4 - 1) << 16 | page, 0};
}

/// A page of doorbells in memory, and one where the controller says which values it wants to be told of.
inline AdminCommand doorbell_buffers(std::uint64_t shadows, std::uint64_t event_indices) {
  return {AdminOpcode::kDoorbellBuffers, 0, shadows, event_indices, 0, 0};
}

}  // namespace admin

}  // namespace bamquery
