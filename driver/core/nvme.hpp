// NVMe commands, completions and doorbells, as NVM Express Base Specification 2.0 and NVM Command Set
// Specification 1.0 lay them out.
#pragma once

#include "driver/core/platform.hpp"
#include "driver/core/status.hpp"

namespace bamquery {

enum class Opcode : uint8_t {
  kFlush = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
};

/// NVM command set: 512 bytes is the smallest LBA.
inline constexpr uint32_t kMinBlockBytes = 512;

/// Host memory page that PRPs count in (CC.MPS = 0).
inline constexpr uint32_t kPrpPageBytes = 4096;

/// Submission queue entry (base specification, figure 88; dwords 10 to 12 as NVM read and write use them).
struct alignas(64) SubmissionEntry {
  uint8_t opcode;
  uint8_t flags;  ///< FUSE (bits 1:0) and PSDT (7:6); 0: no fused operation, PRPs.
  uint16_t command_id;
  uint32_t nsid;
  uint32_t dword2;
  uint32_t dword3;
  uint64_t metadata;  ///< MPTR
  uint64_t prp1;
  uint64_t prp2;         ///< The second page, or the address of a list of all pages after the first.
  uint64_t lba;          ///< SLBA: dwords 10 and 11
  uint16_t block_count;  ///< NLB: 0's based, dword 12 bits 15:0
  uint16_t control;      ///< dword 12 bits 31:16: PRINFO, FUA, LR
  uint32_t dword13;
  uint32_t dword14;
  uint32_t dword15;
};
static_assert(sizeof(SubmissionEntry) == 64);
#if !defined(__CUDACC__)  // not every NVRTC has a constant offsetof; the layout is the same
static_assert(offsetof(SubmissionEntry, command_id) == 2);
static_assert(offsetof(SubmissionEntry, nsid) == 4);
static_assert(offsetof(SubmissionEntry, metadata) == 16);
static_assert(offsetof(SubmissionEntry, prp1) == 24);
static_assert(offsetof(SubmissionEntry, prp2) == 32);
static_assert(offsetof(SubmissionEntry, lba) == 40);
static_assert(offsetof(SubmissionEntry, block_count) == 48);
static_assert(offsetof(SubmissionEntry, control) == 50);
#endif

/// Completion queue entry (figure 90). `outcome` is dwords 2 and 3 as one word, so that one load or store
/// moves the phase tag together with all that it vouches for.
struct alignas(16) CompletionEntry {
  uint64_t result;   ///< Command specific.
  uint64_t outcome;  ///< See Outcome.
};
static_assert(sizeof(CompletionEntry) == 16);
#if !defined(__CUDACC__)
static_assert(offsetof(CompletionEntry, outcome) == 8);
#endif

/// Dwords 2 and 3 of a completion: SQHD 15:0, SQID 31:16, CID 47:32, phase 48, status 63:49.
struct Outcome {
  uint64_t word;

  BAMQUERY_CORE static constexpr Outcome make(uint16_t submission_head, uint16_t submission_queue,
                                              uint16_t command_id, bool phase, Status status) {
    return {static_cast<uint64_t>(submission_head) | static_cast<uint64_t>(submission_queue) << 16 |
            static_cast<uint64_t>(command_id) << 32 | static_cast<uint64_t>(phase) << 48 |
            static_cast<uint64_t>(status.code & 0x7ffu) << 49};
  }
  BAMQUERY_CORE constexpr uint16_t submission_head() const { return static_cast<uint16_t>(word); }
  BAMQUERY_CORE constexpr uint16_t submission_queue() const { return static_cast<uint16_t>(word >> 16); }
  BAMQUERY_CORE constexpr uint16_t command_id() const { return static_cast<uint16_t>(word >> 32); }
  BAMQUERY_CORE constexpr bool phase() const { return (word >> 48 & 1) != 0; }
  /// Without CRD, More and Do Not Retry, which nothing here acts on.
  BAMQUERY_CORE constexpr Status status() const { return {static_cast<uint16_t>(word >> 49 & 0x7ffu)}; }
};

/// Byte offset of a queue pair's doorbells from the start of the doorbell registers, which a controller has
/// at 1000h (NVMe over PCIe transport specification, 3.1.2). `stride` is CAP.DSTRD.
BAMQUERY_CORE constexpr uint32_t tail_doorbell_offset(uint32_t queue, uint32_t stride) {
  return (2 * queue) * (4u << stride);
}
BAMQUERY_CORE constexpr uint32_t head_doorbell_offset(uint32_t queue, uint32_t stride) {
  return (2 * queue + 1) * (4u << stride);
}

/// What a command asks for, before it has a place in a ring.
struct Request {
  Opcode opcode;
  uint32_t nsid;
  uint64_t lba;
  uint32_t blocks;     ///< 1 to 65,536; 0 for a flush.
  uint32_t drive = 0;  ///< Which of the pools at hand reaches the namespace.
};

}  // namespace bamquery
