#include "driver/native/executors/file_transfer.hpp"

#include <cerrno>
#include <cstring>

namespace bamquery {
namespace {

// Devices that are busy say so for moments, not for ever.
constexpr std::uint32_t kMostInterruptions = 10'000;

// Short transfers end between sectors; anywhere else is the end of the file.
constexpr std::int64_t kSector = 512;

Status status_of(int number, Opcode opcode) {
  switch (number) {
    case EBADF:
    case EACCES:
    case EPERM:
    case EROFS:
      return status::kAccessDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return status::kCapacityExceeded;
    case EINVAL:
      return status::kInvalidField;  // the device asks for larger or better aligned blocks
    case EFAULT:
      return status::kDataTransferError;
    case ENOMEM:
    case EAGAIN:
    case EINTR:
      return status::kInternalError;
    default:
      return opcode == Opcode::kRead ? status::kUnrecoveredRead : status::kWriteFault;
  }
}

}  // namespace

std::optional<Status> FileTransfer::refused() const {
  if (operation_.opcode != Opcode::kWrite) return std::nullopt;
  // It would make the file longer.
  if (operation_.offset + operation_.bytes > operation_.file_bytes) return status::kCapacityExceeded;
  return std::nullopt;
}

std::optional<Status> FileTransfer::advance(std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) {
    if (++interrupted_ < kMostInterruptions) return std::nullopt;
  }
  if (result < 0) return status_of(static_cast<int>(-result), operation_.opcode);
  if (operation_.opcode == Opcode::kFlush) return status::kSuccess;
  done_ += static_cast<std::uint32_t>(result);
  if (operation_.opcode == Opcode::kRead && (bytes() == 0 || offset() >= operation_.file_bytes)) {
    return finish_read();
  }
  if (bytes() == 0) return status::kSuccess;
  // The file ends before it should, or a device that takes nothing.
  if (result == 0 || result % kSector != 0) return status_of(EIO, operation_.opcode);
  return std::nullopt;
}

// What lies behind the file's last byte, in its last block, reads as zeros.
Status FileTransfer::finish_read() {
  const std::int64_t wanted = operation_.file_bytes - operation_.offset;
  if (wanted < operation_.bytes) {
    const auto kept = static_cast<std::size_t>(wanted > 0 ? wanted : 0);
    std::memset(operation_.memory + kept, 0, operation_.bytes - kept);
  }
  return status::kSuccess;
}

}  // namespace bamquery
