#include "driver/native/nvme/vfio/iommufd_device.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "driver/native/errors.hpp"
#include "driver/native/nvme/vfio/iommufd_abi.hpp"

namespace bamquery::vfio {
namespace {

constexpr const char* kIommu = "/dev/iommu";

std::string device_path(const PciFunction& function) {
  return "/dev/vfio/devices/" + function.device_file().value_or("");
}

}  // namespace

bool IommufdDevice::offered(const PciFunction& function) {
  return function.device_file() && access(kIommu, F_OK) == 0 &&
         access(device_path(function).c_str(), F_OK) == 0;
}

IommufdDevice::IommufdDevice(const PciFunction& function) {
  const std::string& address = function.address();
  iommu_ = Descriptor(open(kIommu, O_RDWR | O_CLOEXEC));
  if (!iommu_) fail_to_open(address, kIommu, errno);
  if (!function.device_file()) {
    throw StorageError(address,
                       address +
                           ": the kernel has no device file for it (CONFIG_VFIO_DEVICE_CDEV); its VFIO "
                           "group does as well");
  }
  const std::string path = device_path(function);
  Descriptor device(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!device) fail_to_open(address, path, errno);
  iommufd::Bind bind;
  bind.file = iommu_.number();
  if (ioctl(device.number(), iommufd::kBind, &bind) != 0) {
    if (errno == EBUSY || errno == EINVAL) fail_to_open(address, path, EBUSY);
    throw system_error(address, address + ": the device cannot be bound to its IOMMU");
  }
  iommufd::Allocate allocate;
  if (ioctl(iommu_.number(), iommufd::kAllocate, &allocate) != 0) {
    throw system_error(address, address + ": the IOMMU gives no address space");
  }
  space_ = allocate.space;
  iommufd::Attach attach;
  attach.space = space_;
  if (ioctl(device.number(), iommufd::kAttach, &attach) != 0) {
    throw system_error(address, address + ": the device cannot be given an address space");
  }
  device_ = std::make_unique<DeviceFile>(address, std::move(device));
}

std::vector<IovaRange> IommufdDevice::iova_ranges() const {
  std::vector<iommufd::Range> found(16);
  for (;;) {
    iommufd::Ranges ranges;
    ranges.space = space_;
    ranges.count = static_cast<std::uint32_t>(found.size());
    ranges.ranges = reinterpret_cast<std::uint64_t>(found.data());
    if (ioctl(iommu_.number(), iommufd::kRanges, &ranges) == 0) {
      found.resize(ranges.count);
      break;
    }
    if (errno != EMSGSIZE || ranges.count <= found.size()) {
      throw system_error(name(), name() + ": the kernel does not say which addresses the IOMMU allows");
    }
    found.resize(ranges.count);
  }
  std::vector<IovaRange> result;
  for (const iommufd::Range& range : found) result.push_back({range.first, range.last});
  return result;
}

void IommufdDevice::map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) {
  iommufd::Map map;
  map.flags = iommufd::kFixedAddress;
  if (access != QueueAccess::kWrites) map.flags |= iommufd::kReadable;
  if (access != QueueAccess::kReads) map.flags |= iommufd::kWriteable;
  map.space = space_;
  map.address = reinterpret_cast<std::uint64_t>(pages.data());
  map.bytes = pages.size();
  map.iova = iova;
  if (ioctl(iommu_.number(), iommufd::kMap, &map) != 0) fail_to_map(name(), pages.size(), errno);
}

bool IommufdDevice::unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept {
  iommufd::Unmap unmap;
  unmap.space = space_;
  unmap.iova = iova;
  unmap.bytes = bytes;
  return ioctl(iommu_.number(), iommufd::kUnmap, &unmap) == 0 && unmap.bytes == bytes;
}

}  // namespace bamquery::vfio
