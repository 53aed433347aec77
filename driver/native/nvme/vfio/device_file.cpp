#include "driver/native/nvme/vfio/device_file.hpp"

#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "driver/native/errors.hpp"

namespace bamquery::vfio {
namespace {

// PCI Local Bus Specification 3.0, 6.2.2: the command register.
constexpr std::uint64_t kCommandOffset = 4;
constexpr std::uint16_t kMemorySpace = 1u << 1;
constexpr std::uint16_t kBusMaster = 1u << 2;
constexpr std::uint16_t kNoInterrupts = 1u << 10;

vfio_region_info region_of(int file, std::uint32_t index, const std::string& address) {
  vfio_region_info region{};
  region.argsz = sizeof region;
  region.index = index;
  if (ioctl(file, VFIO_DEVICE_GET_REGION_INFO, &region) != 0) {
    throw system_error(address, address + ": VFIO does not describe the device");
  }
  return region;
}

}  // namespace

DeviceFile::DeviceFile(std::string address, Descriptor file)
    : address_(std::move(address)), file_(std::move(file)) {
  configuration_ = region_of(file_.number(), VFIO_PCI_CONFIG_REGION_INDEX, address_).offset;
  // MSI and MSI-X are off until somebody asks VFIO for them.
  set_command(kMemorySpace | kNoInterrupts, kBusMaster);
  map_registers();
}

DeviceFile::~DeviceFile() {
  if (!registers_.empty()) munmap(registers_.data(), registers_.size());
}

void DeviceFile::map_registers() {
  const vfio_region_info region = region_of(file_.number(), VFIO_PCI_BAR0_REGION_INDEX, address_);
  if (region.size == 0 || (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
    throw StorageError(address_, address_ + ": its registers (BAR0) cannot be mapped");
  }
  void* const mapped = mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(),
                            static_cast<off_t>(region.offset));
  if (mapped == MAP_FAILED)
    throw system_error(address_, address_ + ": its registers (BAR0) cannot be mapped");
  registers_ = {static_cast<std::byte*>(mapped), region.size};
}

void DeviceFile::set_command(std::uint16_t set, std::uint16_t clear) {
  std::uint16_t command = 0;
  const auto at = static_cast<off_t>(configuration_ + kCommandOffset);
  if (pread(file_.number(), &command, sizeof command, at) != sizeof command) {
    throw system_error(address_, address_ + ": its configuration space cannot be read");
  }
  command = static_cast<std::uint16_t>((command | set) & ~clear);
  if (pwrite(file_.number(), &command, sizeof command, at) != sizeof command) {
    throw system_error(address_, address_ + ": its configuration space cannot be written");
  }
}

void DeviceFile::set_bus_master(bool on) { set_command(on ? kBusMaster : 0, on ? 0 : kBusMaster); }

bool DeviceFile::reset() noexcept {
  if (ioctl(file_.number(), VFIO_DEVICE_RESET) != 0) return false;
  try {
    set_command(kMemorySpace | kNoInterrupts, kBusMaster);
  } catch (const StorageError&) {
    return false;
  }
  return true;
}

void fail_to_map(const std::string& address, std::uint64_t bytes, int error) {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (error == ENOMEM && limited) {
    throw StorageError(address,
                       address + ": " + std::to_string(bytes) +
                           " bytes more are to stay in memory for the drive, and the process may have " +
                           std::to_string(limit.rlim_cur) +
                           " in all (RLIMIT_MEMLOCK); `ulimit -l unlimited` as root, memlock in "
                           "/etc/security/limits.conf, or LimitMEMLOCK= of a service raise that");
  }
  throw system_error(address, address + ": " + std::to_string(bytes) + " bytes cannot be given to the drive",
                     error);
}

void fail_to_open(const std::string& address, const std::string& path, int error) {
  switch (error) {
    case EBUSY:
      throw StorageError(address, address + ": another process has the drive (" + path +
                                      " is open); `fuser -v " + path + "` says which");
    case EACCES:
    case EPERM:
      throw StorageError(address, address + ": no permission to open " + path + "; `sudo chown $USER " +
                                      path +
                                      "` gives it, `bamquery nvme bind` does so for whoever called sudo");
    case ENOENT:
      throw StorageError(address,
                         address + ": there is no " + path +
                             "; `modprobe vfio-pci` makes it, and in a container --device has to name it");
    default:
      throw system_error(address, address + ": " + path + " cannot be opened", error);
  }
}

}  // namespace bamquery::vfio
