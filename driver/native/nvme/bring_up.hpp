// A controller from whatever state it is in to ready, and back (NVM Express Base
// Specification 2.0, 3.5, 3.6).
#pragma once

#include <cstdint>
#include <string>

#include "driver/native/nvme/admin_queue.hpp"
#include "driver/native/nvme/registers.hpp"

namespace bamquery {

/// How long the controller may take to become ready, or not ready: CAP.TO, or what CRTO says where it is
/// there; a second at least, a minute and a half at most.
std::uint64_t ready_timeout_ns(const Registers& registers);

/// Clears CC.EN and waits until the controller is not ready, after which it reaches no memory. False: it
/// still was at the deadline.
bool disable_controller(Registers& registers, Deadline deadline);

/// Makes a disabled controller ready, with these admin rings. NvmeError with `name`: it cannot work with this
/// driver, it failed, or it was not ready in time.
void enable_controller(Registers& registers, AdminQueue& admin, const std::string& name);

/// Tells it that it will not be used any more, and waits until it has saved what it has to. False: it had not
/// at the deadline.
bool shut_down_controller(Registers& registers, Deadline deadline);

}  // namespace bamquery
