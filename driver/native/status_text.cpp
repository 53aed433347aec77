#include "driver/native/status_text.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace bamquery {
namespace {

struct Text {
  std::uint16_t code;  ///< SCT << 8 | SC
  const char* text;
};

// In order. NVM Express Base Specification 2.0, figures 93 to 98, and NVM Command Set
// Specification 1.0, 3.2.4.
constexpr Text kTexts[] = {
    {0x000, "success"},
    // Generic.
    {0x001, "the controller does not know the command"},
    {0x002, "a field of the command is invalid"},
    {0x003, "another command in flight has its identifier"},
    {0x004, "its data could not be transferred"},
    {0x005, "it was aborted since power was lost"},
    {0x006, "internal error of the controller"},
    {0x007, "it was aborted"},
    {0x008, "its queue was deleted"},
    {0x009, "it was aborted since the command fused with it failed"},
    {0x00a, "it was aborted since the command fused with it is missing"},
    {0x00b, "there is no such namespace"},
    {0x00c, "commands came in a wrong order"},
    {0x00d, "a segment of its scatter-gather list is invalid"},
    {0x00e, "the number of descriptors of its scatter-gather list is invalid"},
    {0x00f, "the length of its scatter-gather list is invalid"},
    {0x010, "the length of its metadata is invalid"},
    {0x011, "a descriptor of its scatter-gather list is invalid"},
    {0x012, "it uses the controller's memory buffer in a way that is invalid"},
    {0x013, "the memory it names is not aligned"},
    {0x014, "it is larger than can be written atomically"},
    {0x015, "it is denied"},
    {0x016, "the offset of its scatter-gather list is invalid"},
    {0x018, "the host's identifier has no consistent format"},
    {0x019, "the keep alive timer ran out"},
    {0x01a, "the keep alive timeout is invalid"},
    {0x01b, "it was aborted by a preempt and abort"},
    {0x01c, "sanitizing the drive failed"},
    {0x01d, "the drive is being sanitized"},
    {0x01e, "the granularity of data blocks of its scatter-gather list is invalid"},
    {0x01f, "the command is not supported for queues in the controller's memory buffer"},
    {0x020, "the namespace is write protected"},
    {0x021, "it was interrupted, and may be tried again"},
    {0x022, "a transient error of the transport"},
    {0x023, "it is prohibited by the command and feature lockdown"},
    {0x024, "the medium for administration is not ready"},
    {0x080, "it goes beyond the end of the namespace"},
    {0x081, "no space left"},
    {0x082, "the namespace is not ready"},
    {0x083, "it conflicts with a reservation"},
    {0x084, "the namespace is being formatted"},
    // Of particular commands.
    {0x100, "the completion queue does not exist"},
    {0x101, "the queue number is in use, or cannot be"},
    {0x102, "the queue cannot have that size"},
    {0x103, "too many commands to abort are under way"},
    {0x105, "too many commands that await events are under way"},
    {0x106, "there is no such slot of firmware"},
    {0x107, "the firmware is invalid"},
    {0x108, "the interrupt vector is invalid"},
    {0x109, "there is no such log page"},
    {0x10a, "the format is invalid"},
    {0x10b, "the firmware needs a reset of the controller"},
    {0x10c, "the queue cannot be deleted before its submission queues"},
    {0x10d, "the feature cannot be saved"},
    {0x10e, "the feature cannot be changed"},
    {0x10f, "the feature is not of a namespace"},
    {0x110, "the firmware needs a reset of the subsystem"},
    {0x114, "the range overlaps another"},
    {0x115, "the capacity for another namespace is not there"},
    {0x116, "no namespace number is left"},
    {0x118, "the namespace is attached already"},
    {0x119, "the namespace is private"},
    {0x11a, "the namespace is not attached"},
    {0x11d, "a self-test of the drive is in progress"},
    {0x120, "the controller's number is invalid"},
    {0x128, "the command set is not supported"},
    {0x180, "its attributes conflict"},
    {0x181, "its protection information is invalid"},
    {0x182, "a write to what may be read only"},
    {0x183, "it is larger than the command may be"},
    // Medium and integrity of data.
    {0x280, "write fault"},
    {0x281, "unrecovered read error"},
    {0x282, "the guard of its data does not match"},
    {0x283, "the application tag of its data does not match"},
    {0x284, "the reference tag of its data does not match"},
    {0x285, "the blocks do not compare"},
    {0x286, "access denied"},
    {0x287, "the block was deallocated, or never written"},
    {0x288, "the storage tag of its data does not match"},
    // Of the path to the drive.
    {0x300, "internal error of the path"},
    {0x301, "the namespace is not to be reached this way, for good"},
    {0x302, "the namespace is not to be reached this way now"},
    {0x303, "the namespace changes the way it is reached"},
    {0x360, "the path failed at the controller"},
    {0x370, "the path failed at the host"},
    {0x371, "the host aborted it"},
    // Said by the core, never by a controller.
    {status::kDeadlineMissed.code, "no completion came before the deadline"},
    {status::kNoSlot.code, "no slot of the queue pair came free before the deadline"},
    {status::kQueueBroken.code, "the controller broke the protocol of the queue pair"},
    {status::kNoQueuePair.code, "no queue pair came free before the deadline"},
    {status::kAllPagesPinned.code, "all pages of the cache are in use"},
    {status::kOutOfBounds.code, "beyond the end"},
    {status::kTooLarge.code, "larger than a command may be"},
    {status::kReadOnly.code, "it takes no writes"},
};
static_assert(std::ranges::is_sorted(kTexts, {}, &Text::code));

}  // namespace

std::string status_text(Status code) {
  const auto* const found = std::ranges::lower_bound(kTexts, code.code, {}, &Text::code);
  if (found != std::end(kTexts) && found->code == code.code) return found->text;
  char text[32];
  std::snprintf(text, sizeof text, "status %xh/%02xh", code.type(), code.value());
  return text;
}

}  // namespace bamquery
