// A PCI device through VFIO, as much of it as guests' own programs need: a group, a container, BAR0, one
// mapping.
#pragma once

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace guests {

// The number of the IOMMU group that it is in; -1 for none.
inline int group_of(const std::string& address) {
  char target[256];
  const std::string link = "/sys/bus/pci/devices/" + address + "/iommu_group";
  const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
  if (length < 0) return -1;
  target[length] = 0;
  return std::atoi(std::strrchr(target, '/') + 1);
}

// Open as long as it lives. Throws std::runtime_error with the call that failed.
class Device {
 public:
  explicit Device(const std::string& address)
      : container_(open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC)),
        group_(open(("/dev/vfio/" + std::to_string(group_of(address))).c_str(), O_RDWR | O_CLOEXEC)) {
    require(container_ >= 0, "open /dev/vfio/vfio");
    require(group_ >= 0, "open the group");
    status_.argsz = sizeof status_;
    require(ioctl(group_, VFIO_GROUP_GET_STATUS, &status_) == 0, "VFIO_GROUP_GET_STATUS");
    require(ioctl(group_, VFIO_GROUP_SET_CONTAINER, &container_) == 0, "VFIO_GROUP_SET_CONTAINER");
    require(ioctl(container_, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0, "VFIO_SET_IOMMU");
    device_ = ioctl(group_, VFIO_GROUP_GET_DEVICE_FD, address.c_str());
    require(device_ >= 0, "VFIO_GROUP_GET_DEVICE_FD");
    vfio_region_info bar{};
    bar.argsz = sizeof bar;
    bar.index = VFIO_PCI_BAR0_REGION_INDEX;
    require(ioctl(device_, VFIO_DEVICE_GET_REGION_INFO, &bar) == 0, "VFIO_DEVICE_GET_REGION_INFO");
    bar_bytes_ = bar.size;
    bar_ = mmap(nullptr, bar_bytes_, PROT_READ, MAP_SHARED, device_, static_cast<off_t>(bar.offset));
    require(bar_ != MAP_FAILED, "mmap of BAR0");
  }
  ~Device() {
    munmap(bar_, bar_bytes_);
    for (const int file : {device_, group_, container_}) close(file);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool is_viable() const { return (status_.flags & VFIO_GROUP_FLAGS_VIABLE) != 0; }
  size_t bar_bytes() const { return bar_bytes_; }

  // The register at this byte of BAR0; registers are read by 32 bits (NVMe base specification 2.0, 3.1.3).
  uint32_t read32(size_t at) const {
    return *reinterpret_cast<const volatile uint32_t*>(static_cast<const volatile char*>(bar_) + at);
  }

  // Pins memory and gives the device its pages at this address.
  void map(void* memory, size_t bytes, uint64_t iova) {
    vfio_iommu_type1_dma_map mapping{};
    mapping.argsz = sizeof mapping;
    mapping.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    mapping.vaddr = reinterpret_cast<uintptr_t>(memory);
    mapping.iova = iova;
    mapping.size = bytes;
    require(ioctl(container_, VFIO_IOMMU_MAP_DMA, &mapping) == 0, "VFIO_IOMMU_MAP_DMA");
  }

 private:
  static void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  int container_, group_, device_ = -1;
  vfio_group_status status_{};
  void* bar_ = MAP_FAILED;
  size_t bar_bytes_ = 0;
};

}  // namespace guests
