#include "driver/native/nvme/vfio/group_device.hpp"

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "driver/native/errors.hpp"

namespace bamquery::vfio {
namespace {

constexpr const char* kContainer = "/dev/vfio/vfio";
// Of kernels before 5.4, which do not say: what every IOMMU has.
constexpr IovaRange kUnsaid{0, (1ull << 39) - 1};

}  // namespace

GroupDevice::GroupDevice(const PciFunction& function) : number_(function.group().value()) {
  const std::string& address = function.address();
  container_ = Descriptor(open(kContainer, O_RDWR | O_CLOEXEC));
  if (!container_) fail_to_open(address, kContainer, errno);
  if (ioctl(container_.number(), VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
      ioctl(container_.number(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1) {
    throw StorageError(address,
                       address + ": the kernel's VFIO has no IOMMU of type 1; `modprobe vfio_iommu_type1`");
  }
  const std::string path = "/dev/vfio/" + std::to_string(number_);
  group_ = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!group_) fail_to_open(address, path, errno);
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (ioctl(group_.number(), VFIO_GROUP_GET_STATUS, &status) != 0) {
    throw system_error(address, address + ": VFIO does not describe group " + std::to_string(number_));
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    throw StorageError(address, address + ": not all devices of IOMMU group " + std::to_string(number_) +
                                    " belong to vfio-pci; `ls /sys/kernel/iommu_groups/" +
                                    std::to_string(number_) + "/devices` shows them");
  }
  int container = container_.number();
  if (ioctl(group_.number(), VFIO_GROUP_SET_CONTAINER, &container) != 0 ||
      ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
    throw system_error(address,
                       address + ": the IOMMU cannot be set up for group " + std::to_string(number_));
  }
  Descriptor device(ioctl(group_.number(), VFIO_GROUP_GET_DEVICE_FD, address.c_str()));
  if (!device) throw system_error(address, address + ": VFIO does not give the device");
  device_ = std::make_unique<DeviceFile>(address, std::move(device));
}

std::string GroupDevice::interface() const { return "VFIO group " + std::to_string(number_); }

std::vector<IovaRange> GroupDevice::iova_ranges() const {
  vfio_iommu_type1_info size{};
  size.argsz = sizeof size;
  if (ioctl(container_.number(), VFIO_IOMMU_GET_INFO, &size) != 0) {
    throw system_error(name(), name() + ": VFIO does not say which addresses the IOMMU allows");
  }
  std::vector<std::byte> answer(size.argsz);
  auto* const info = reinterpret_cast<vfio_iommu_type1_info*>(answer.data());
  info->argsz = size.argsz;
  if (ioctl(container_.number(), VFIO_IOMMU_GET_INFO, info) != 0) {
    throw system_error(name(), name() + ": VFIO does not say which addresses the IOMMU allows");
  }
  if ((info->flags & VFIO_IOMMU_INFO_CAPS) == 0) return {kUnsaid};
  // A chain of capabilities, each with the offset of the next.
  for (std::size_t at = info->cap_offset; at != 0 && at + sizeof(vfio_info_cap_header) <= answer.size();) {
    vfio_info_cap_header header;
    std::memcpy(&header, answer.data() + at, sizeof header);
    if (header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
      const auto* const found =
          reinterpret_cast<const vfio_iommu_type1_info_cap_iova_range*>(answer.data() + at);
      std::vector<IovaRange> ranges;
      for (std::uint32_t i = 0; i < found->nr_iovas; ++i) {
        ranges.push_back({found->iova_ranges[i].start, found->iova_ranges[i].end});
      }
      return ranges;
    }
    if (header.next <= at) break;
    at = header.next;
  }
  return {kUnsaid};
}

void GroupDevice::map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) {
  vfio_iommu_type1_dma_map map{};
  map.argsz = sizeof map;
  if (access != QueueAccess::kWrites) map.flags |= VFIO_DMA_MAP_FLAG_READ;
  if (access != QueueAccess::kReads) map.flags |= VFIO_DMA_MAP_FLAG_WRITE;
  map.vaddr = reinterpret_cast<std::uint64_t>(pages.data());
  map.iova = iova;
  map.size = pages.size();
  if (ioctl(container_.number(), VFIO_IOMMU_MAP_DMA, &map) != 0) fail_to_map(name(), pages.size(), errno);
}

bool GroupDevice::unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept {
  vfio_iommu_type1_dma_unmap unmap{};
  unmap.argsz = sizeof unmap;
  unmap.iova = iova;
  unmap.size = bytes;
  return ioctl(container_.number(), VFIO_IOMMU_UNMAP_DMA, &unmap) == 0 && unmap.size == bytes;
}

}  // namespace bamquery::vfio
