// How a command ended.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

/// Status code type and status code of a completion (NVM Express Base Specification 2.0, figures 93 to 98),
/// and, as vendor-specific codes, how the core itself fails.
struct Status {
  uint16_t code;  ///< SCT << 8 | SC

  BAMQUERY_CORE constexpr bool ok() const { return code == 0; }
  BAMQUERY_CORE constexpr uint32_t type() const { return code >> 8; }
  BAMQUERY_CORE constexpr uint32_t value() const { return code & 0xffu; }
  friend BAMQUERY_CORE constexpr bool operator==(Status left, Status right) {
    return left.code == right.code;
  }
};

namespace status {

inline constexpr Status kSuccess{0x000};

// Generic command status (SCT 0h).
inline constexpr Status kInvalidOpcode{0x001};
inline constexpr Status kInvalidField{0x002};
inline constexpr Status kDataTransferError{0x004};
inline constexpr Status kInternalError{0x006};
inline constexpr Status kAbortRequested{0x007};
inline constexpr Status kQueueDeleted{0x008};
inline constexpr Status kInvalidNamespace{0x00b};
inline constexpr Status kPrpOffsetInvalid{0x013};
inline constexpr Status kLbaOutOfRange{0x080};
inline constexpr Status kCapacityExceeded{0x081};
inline constexpr Status kNamespaceNotReady{0x082};

// Media and data integrity errors (SCT 2h).
inline constexpr Status kWriteFault{0x280};
inline constexpr Status kUnrecoveredRead{0x281};
inline constexpr Status kAccessDenied{0x286};

// Vendor specific (SCT 7h): never sent by a controller, said by the core.
inline constexpr Status kDeadlineMissed{0x7c0};  ///< No completion came in time; the slot is quarantined.
inline constexpr Status kNoSlot{0x7c1};          ///< No slot of the queue pair came free in time.
inline constexpr Status kQueueBroken{0x7c2};  ///< The controller broke the protocol; the queue is unusable.
inline constexpr Status kNoQueuePair{0x7c3};  ///< No queue pair of the pool came free in time.
inline constexpr Status kAllPagesPinned{0x7c4};  ///< Every page of the cache is in use.
inline constexpr Status kOutOfBounds{0x7c5};     ///< An index beyond the end of an array or extent.
inline constexpr Status kTooLarge{0x7c6};        ///< A transfer larger than a slot or the controller allows.
inline constexpr Status kReadOnly{0x7c7};        ///< A write to an array or namespace that takes none.

}  // namespace status

}  // namespace bamquery
