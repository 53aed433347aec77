// Drives that this process has open, for when it ends without closing them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace bamquery {

class NvmeDrive;

/// At an exit, each drive is shut down as by its end. At a signal that ends the process, each is told that it
/// will not be used any more, which takes no lock and no memory: for signals that nobody has a handler for.
/// Nothing can be done at SIGKILL: VFIO takes the drive's access to memory away, and the next to open it
/// finds it in whatever state it is in.
class LiveDrives {
 public:
  /// Never destroyed.
  static LiveDrives& of_process();

  void add(NvmeDrive& drive);
  void remove(NvmeDrive& drive);

 private:
  LiveDrives() = default;

  static void at_exit();
  static void at_signal(int signal);
  void install_handlers();

  std::mutex mutex_;
  std::vector<NvmeDrive*> drives_;
  bool handles_ = false;
  std::atomic<int> process_{0};  ///< Whose drives they are: a forked child's signals are not their end.
  /// Their configuration registers (CC), for the handler; more drives than these get no notice there.
  std::array<std::atomic<volatile std::uint32_t*>, 64> registers_{};
};

}  // namespace bamquery
