#include "driver/native/status_text.hpp"

#include <cstdio>

namespace bamquery {

std::string status_text(Status code) {
  switch (code.code) {
    case status::kSuccess.code:
      return "success";
    case status::kInvalidOpcode.code:
      return "the controller does not know the command";
    case status::kInvalidField.code:
      return "a field of the command is invalid";
    case status::kDataTransferError.code:
      return "its data could not be transferred";
    case status::kInternalError.code:
      return "internal error of the controller";
    case status::kAbortRequested.code:
      return "it was aborted";
    case status::kQueueDeleted.code:
      return "its queue was deleted";
    case status::kInvalidNamespace.code:
      return "there is no such namespace";
    case status::kPrpOffsetInvalid.code:
      return "the memory it names is not aligned";
    case status::kLbaOutOfRange.code:
      return "it goes beyond the end of the namespace";
    case status::kCapacityExceeded.code:
      return "no space left";
    case status::kNamespaceNotReady.code:
      return "the namespace is not ready";
    case status::kWriteFault.code:
      return "write fault";
    case status::kUnrecoveredRead.code:
      return "unrecovered read error";
    case status::kAccessDenied.code:
      return "access denied";
    case status::kDeadlineMissed.code:
      return "no completion came before the deadline";
    case status::kNoSlot.code:
      return "no slot of the queue pair came free before the deadline";
    case status::kQueueBroken.code:
      return "the controller broke the protocol of the queue pair";
    case status::kNoQueuePair.code:
      return "no queue pair came free before the deadline";
    case status::kAllPagesPinned.code:
      return "all pages of the cache are in use";
    case status::kOutOfBounds.code:
      return "beyond the end";
    case status::kTooLarge.code:
      return "larger than a command may be";
    case status::kReadOnly.code:
      return "it takes no writes";
    default:
      char text[32];
      std::snprintf(text, sizeof text, "status %xh/%02xh", code.type(), code.value());
      return text;
  }
}

}  // namespace bamquery
