// What a controller makes of a submission entry: nothing in it is believed before it was checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/core/nvme.hpp"
#include "driver/native/controller/namespace.hpp"

namespace bamquery {

/// Bus addresses that commands may name. A software controller's bus addresses are its virtual addresses.
struct BusArea {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;

  bool holds(std::uint64_t address, std::uint64_t length) const {
    return address >= first && length <= bytes && address - first <= bytes - length;
  }
};

struct TransferLimits {
  BusArea landing;                       ///< Where data may lie.
  BusArea lists;                         ///< Where PRP lists may lie.
  std::uint32_t max_transfer_bytes = 0;  ///< MDTS
};

/// Memory of a command that lies in one piece.
struct Segment {
  std::byte* memory;
  std::uint32_t bytes;
};

/// Most segments of one command: a page each, and a part of a page more where the first one is not whole.
inline std::uint32_t most_segments(const TransferLimits& limits) {
  return limits.max_transfer_bytes / kPrpPageBytes + 2;
}

/// The first byte of a read or write, and how many; both within the namespace where `status` is success.
struct Extent {
  Status status;
  std::uint64_t offset;
  std::uint32_t bytes;
};

inline Extent check_extent(const SubmissionEntry& entry, const NamespaceView& view,
                           const TransferLimits& limits) {
  const std::uint64_t count = std::uint64_t{entry.block_count} + 1;
  if (entry.lba >= view.blocks || count > view.blocks - entry.lba) return {status::kLbaOutOfRange, 0, 0};
  const std::uint64_t bytes = count << view.block_shift;
  if (bytes > limits.max_transfer_bytes) return {status::kInvalidField, 0, 0};
  const std::uint64_t offset = entry.lba << view.block_shift;
  if (entry.opcode == static_cast<std::uint8_t>(Opcode::kWrite)) {
    if (!view.writable) return {status::kAccessDenied, 0, 0};
    // A file's last block may not be whole: a write would make the file longer.
    if (view.data_bytes - offset < bytes) return {status::kCapacityExceeded, 0, 0};
  }
  return {status::kSuccess, offset, static_cast<std::uint32_t>(bytes)};
}

/// Opcode, flags and namespace number, before anything else is looked at.
inline Status check_header(const SubmissionEntry& entry, const NamespaceView& view) {
  if (entry.opcode > static_cast<std::uint8_t>(Opcode::kRead)) return status::kInvalidOpcode;
  if (entry.flags != 0) return status::kInvalidField;  // fused commands and SGLs
  if (view.backing == Backing::kNone) return status::kInvalidNamespace;
  return status::kSuccess;
}

/// Takes the pages one after another and joins what lies side by side.
class SegmentList {
 public:
  SegmentList(Segment* segments, const BusArea& landing) : segments_(segments), landing_(landing) {}

  bool add(std::uint64_t address, std::uint32_t bytes) {
    if (!landing_.holds(address, bytes)) return false;
    auto* const memory = reinterpret_cast<std::byte*>(address);
    if (count_ > 0 && segments_[count_ - 1].memory + segments_[count_ - 1].bytes == memory) {
      segments_[count_ - 1].bytes += bytes;
    } else {
      segments_[count_++] = {memory, bytes};
    }
    return true;
  }
  std::uint32_t count() const { return count_; }

 private:
  Segment* segments_;
  const BusArea& landing_;
  std::uint32_t count_ = 0;
};

/// Follows a command's PRPs (NVM Express Base Specification 2.0, 4.1.1) into `segments`, which has room for
/// most_segments(). Each list entry is read once, so that what was checked is what is used.
inline Status locate(const SubmissionEntry& entry, std::uint32_t bytes, const TransferLimits& limits,
                     Segment* segments, std::uint32_t& count) {
  SegmentList list(segments, limits.landing);
  const std::uint64_t in_page = entry.prp1 % kPrpPageBytes;
  if (in_page % 4 != 0) return status::kPrpOffsetInvalid;
  const std::uint64_t first = kPrpPageBytes - in_page;
  std::uint32_t left = bytes;
  std::uint32_t piece = left < first ? left : static_cast<std::uint32_t>(first);
  if (!list.add(entry.prp1, piece)) return status::kDataTransferError;
  left -= piece;
  if (left > 0 && left <= kPrpPageBytes) {
    if (entry.prp2 % kPrpPageBytes != 0) return status::kPrpOffsetInvalid;
    if (!list.add(entry.prp2, left)) return status::kDataTransferError;
    left = 0;
  }
  std::uint64_t place = entry.prp2;
  if (left > 0 && place % sizeof(std::uint64_t) != 0) return status::kPrpOffsetInvalid;
  while (left > 0) {
    if (!limits.lists.holds(place, sizeof(std::uint64_t))) return status::kDataTransferError;
    std::uint64_t page;
    std::memcpy(&page, reinterpret_cast<const void*>(place), sizeof(page));
    if (page % kPrpPageBytes != 0) return status::kPrpOffsetInvalid;
    // The last entry of a page of the list says where the list goes on, if it does.
    if (left > kPrpPageBytes && (place + sizeof(page)) % kPrpPageBytes == 0) {
      place = page;
      continue;
    }
    piece = left < kPrpPageBytes ? left : kPrpPageBytes;
    if (!list.add(page, piece)) return status::kDataTransferError;
    left -= piece;
    place += sizeof(page);
  }
  count = list.count();
  return status::kSuccess;
}

}  // namespace bamquery
