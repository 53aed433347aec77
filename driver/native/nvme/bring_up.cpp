#include "driver/native/nvme/bring_up.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver/native/errors.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kReadyUnit = kSecond / 2;

// Looks until it holds; false at the deadline.
template <typename Holds>
bool await(Holds holds, Deadline deadline) {
  for (std::uint32_t looks = 0;; ++looks) {
    if (holds()) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 100 ? 20 : 1000));
  }
}

[[noreturn]] void fail(const std::string& name, const std::string& why, Status status) {
  throw NvmeError(name, name + ": " + why, 0, 0, status);
}

std::string seconds(std::uint64_t ns) { return std::to_string((ns + kReadyUnit) / kSecond) + " s"; }

}  // namespace

std::uint64_t ready_timeout_ns(const Registers& registers) {
  const Capabilities capabilities = registers.capabilities();
  std::uint64_t ns = capabilities.ready_timeout_ns();
  if (capabilities.has_ready_timeouts()) {
    ns = std::max(ns, (registers.read(ControllerRegister::kReadyTimeouts) & 0xffff) * kReadyUnit);
  }
  return std::clamp(ns, kSecond, 90 * kSecond);
}

bool disable_controller(Registers& registers, Deadline deadline) {
  const std::uint32_t before = registers.read(ControllerRegister::kConfiguration);
  registers.write(ControllerRegister::kConfiguration,
                  before & ~(configuration::kEnable | configuration::kShutdownMask));
  ControllerStatus status{};
  await(
      [&] {
        status = registers.status();
        return !status.ready() || status.gone();
      },
      deadline);
  if (status.ready()) return false;
  // A fatal error goes with the reset, which may have been of a controller that never was ready.
  const Deadline soon{std::min(deadline.at_ns, now_ns() + kReadyUnit)};
  await([&] { return !registers.status().fatal(); }, soon);
  return true;
}

void enable_controller(Registers& registers, AdminQueue& admin, const std::string& name) {
  const Capabilities capabilities = registers.capabilities();
  if (capabilities.least_page_shift() > 12) {
    fail(name,
         "it needs memory pages of " + std::to_string(1u << capabilities.least_page_shift()) +
             " bytes (CAP.MPSMIN)",
         status::kInvalidField);
  }
  if (!capabilities.has_nvm_commands() && !capabilities.has_command_sets()) {
    fail(name, "it has no NVM command set (CAP.CSS)", status::kInvalidField);
  }
  admin.renew();
  admin.use_doorbells(capabilities.doorbell_stride(), nullptr);
  registers.write(ControllerRegister::kInterruptMaskSet, 0xffffffffu);
  registers.write(ControllerRegister::kAdminQueueSizes,
                  (AdminQueue::kDepth - 1) << 16 | (AdminQueue::kDepth - 1));
  registers.write_wide(ControllerRegister::kAdminSubmissions, admin.submissions());
  registers.write_wide(ControllerRegister::kAdminCompletions, admin.completions());
  const std::uint32_t sets = capabilities.has_nvm_commands() ? 0 : configuration::kAllCommandSets;
  registers.write(ControllerRegister::kConfiguration,
                  configuration::kEntrySizes | sets | configuration::kEnable);
  const std::uint64_t timeout = ready_timeout_ns(registers);
  ControllerStatus status{};
  const bool settled = await(
      [&] {
        status = registers.status();
        return status.ready() || status.fatal() || status.gone();
      },
      Deadline::in(timeout));
  if (status.gone()) fail(name, "the drive is gone: its registers read as ones", status::kQueueBroken);
  if (status.fatal())
    fail(name, "the drive reports a fatal error (CSTS.CFS) instead of becoming ready", status::kQueueBroken);
  if (!settled)
    fail(name, "the drive did not become ready within " + seconds(timeout), status::kDeadlineMissed);
}

bool shut_down_controller(Registers& registers, Deadline deadline) {
  const std::uint32_t before = registers.read(ControllerRegister::kConfiguration);
  registers.write(ControllerRegister::kConfiguration,
                  (before & ~configuration::kShutdownMask) | configuration::kNormalShutdown);
  return await(
      [&] {
        const ControllerStatus status = registers.status();
        return status.shut_down() || status.fatal() || status.gone();
      },
      deadline);
}

}  // namespace bamquery
