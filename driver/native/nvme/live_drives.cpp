#include "driver/native/nvme/live_drives.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "driver/native/nvme/nvme_drive.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kExitNs = 2'000'000'000;

static_assert(std::atomic<volatile std::uint32_t*>::is_always_lock_free);

}  // namespace

LiveDrives& LiveDrives::of_process() {
  static auto* const drives = new LiveDrives;
  return *drives;
}

void LiveDrives::add(NvmeDrive& drive) {
  const std::lock_guard lock(mutex_);
  install_handlers();
  process_.store(getpid());
  drives_.push_back(&drive);
  for (auto& place : registers_) {
    if (place.load() != nullptr) continue;
    place.store(drive.registers().address(ControllerRegister::kConfiguration));
    break;
  }
}

void LiveDrives::remove(NvmeDrive& drive) {
  const std::lock_guard lock(mutex_);
  std::erase(drives_, &drive);
  for (auto& place : registers_) {
    if (place.load() == drive.registers().address(ControllerRegister::kConfiguration)) place.store(nullptr);
  }
}

void LiveDrives::install_handlers() {
  if (handles_) return;
  handles_ = true;
  std::atexit(at_exit);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGILL, SIGFPE}) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
        before.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction ours{};
    ours.sa_handler = at_signal;
    // Once: the signal's own effect comes after it.
    ours.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
    sigaction(number, &ours, nullptr);
  }
}

void LiveDrives::at_exit() {
  LiveDrives& live = of_process();
  std::vector<NvmeDrive*> drives;
  {
    const std::unique_lock lock(live.mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    drives = live.drives_;
  }
  const Deadline deadline = Deadline::in(kExitNs);
  for (NvmeDrive* const drive : drives) drive->shut_down(deadline);
}

void LiveDrives::at_signal(int signal) {
  LiveDrives& live = of_process();
  for (const auto& place : live.registers_) {
    if (live.process_.load() != getpid()) break;
    volatile std::uint32_t* const word = place.load();
    if (word == nullptr) continue;
    *word = (*word & ~configuration::kShutdownMask) | configuration::kNormalShutdown;
  }
  raise(signal);
}

}  // namespace bamquery
