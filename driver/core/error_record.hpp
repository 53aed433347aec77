// The first failure of a kernel, for its host to raise.
#pragma once

#include "driver/core/atomics.hpp"
#include "driver/core/nvme.hpp"

namespace bamquery {

/// Zeros: no failure. Read it when all who may write to it have ended.
struct ErrorRecord {
  uint32_t count;  ///< Failures; the other fields are of the one that was counted first.
  uint32_t nsid;
  uint64_t lba;
  uint32_t blocks;
  uint16_t status;  ///< Status::code
  uint8_t opcode;
  uint8_t drive;  ///< Request::drive
};
static_assert(sizeof(ErrorRecord) == 24);

BAMQUERY_CORE void record_error(ErrorRecord* record, const Request& request, Status status) {
  // Relaxed: the count only picks who writes; the host reads after the kernel.
  if (AtomicRef<uint32_t, Scope::kDevice>(record->count).fetch_add(1, kRelaxed) != 0) return;
  record->nsid = request.nsid;
  record->lba = request.lba;
  record->blocks = request.blocks;
  record->status = status.code;
  record->opcode = static_cast<uint8_t>(request.opcode);
  record->drive = static_cast<uint8_t>(request.drive);
}

}  // namespace bamquery
