// Looks at NVMe controllers through VFIO, without a driver of ours: `probe ADDRESS...`.
#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "check.hpp"

namespace {

using guests::check;

int group_of(const std::string& address) {
  char target[256];
  const std::string link = "/sys/bus/pci/devices/" + address + "/iommu_group";
  const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
  if (length < 0) return -1;
  target[length] = 0;
  return std::atoi(std::strrchr(target, '/') + 1);
}

// The register at this byte of BAR0; registers are read by 32 bits (NVMe base specification 2.0, 3.1.3).
uint32_t read32(const volatile void* bar, size_t at) {
  return *reinterpret_cast<const volatile uint32_t*>(static_cast<const volatile char*>(bar) + at);
}

void probe(const std::string& address, const std::string& prefix) {
  const auto named = [&](const char* what) { return prefix + what; };
  const int number = group_of(address);
  check(number >= 0, named("group").c_str(), "%s is in IOMMU group %d", address.c_str(), number);
  const int container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
  const int group = open(("/dev/vfio/" + std::to_string(number)).c_str(), O_RDWR | O_CLOEXEC);
  vfio_group_status status{.argsz = sizeof status, .flags = 0};
  const bool is_viable = group >= 0 && ioctl(group, VFIO_GROUP_GET_STATUS, &status) == 0 &&
                         (status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0;
  check(is_viable, named("viable").c_str(), "flags of the group are 0x%x", status.flags);
  if (!is_viable || ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) != 0 ||
      ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
    check(false, named("registers").c_str(), "no container with a type 1 IOMMU: %s", std::strerror(errno));
    return;
  }
  const int device = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, address.c_str());
  vfio_region_info bar{};
  bar.argsz = sizeof bar;
  bar.index = VFIO_PCI_BAR0_REGION_INDEX;
  void* mapped = MAP_FAILED;
  if (device >= 0 && ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &bar) == 0) {
    mapped = mmap(nullptr, bar.size, PROT_READ, MAP_SHARED, device, static_cast<off_t>(bar.offset));
  }
  if (mapped == MAP_FAILED) {
    check(false, named("registers").c_str(), "BAR0 cannot be mapped: %s", std::strerror(errno));
    return;
  }
  const uint32_t capabilities = read32(mapped, 0), version = read32(mapped, 8);
  const uint32_t entries = (capabilities & 0xffff) + 1;  // CAP.MQES
  check(version >= 0x10000 && version != ~0u && entries >= 2, named("registers").c_str(),
        "NVMe %u.%u, queues of up to %u entries, BAR0 has %llu bytes", version >> 16, version >> 8 & 0xff,
        entries, static_cast<unsigned long long>(bar.size));
  close(device);
  close(group);
  close(container);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) probe(argv[i], "drive" + std::to_string(i - 1) + "/");
  return 0;
}
