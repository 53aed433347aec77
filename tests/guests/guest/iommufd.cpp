// Looks at an NVMe controller through iommufd, without a driver of ours: `iommufd ADDRESS`.
// Numbers and structures are those of include/uapi/linux/iommufd.h and vfio.h of Linux 6.12, which systems
// with older headers do not have.
#include <dirent.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "check.hpp"

namespace {

struct BindIommufd {  // VFIO_DEVICE_BIND_IOMMUFD
  uint32_t bytes = sizeof(BindIommufd), flags = 0;
  int32_t iommufd = -1;
  uint32_t device_id = 0;
};
struct AttachPageTable {  // VFIO_DEVICE_ATTACH_IOMMUFD_PT
  uint32_t bytes = sizeof(AttachPageTable), flags = 0, id = 0;
};
struct AllocateAddressSpace {  // IOMMU_IOAS_ALLOC
  uint32_t bytes = sizeof(AllocateAddressSpace), flags = 0, id = 0;
};
struct MapMemory {  // IOMMU_IOAS_MAP
  uint32_t bytes = sizeof(MapMemory), flags = 0, id = 0, reserved = 0;
  uint64_t address = 0, length = 0, iova = 0;
};
constexpr unsigned long kBind = _IO(VFIO_TYPE, VFIO_BASE + 18), kAttach = _IO(VFIO_TYPE, VFIO_BASE + 19),
                        kAllocate = _IO(VFIO_TYPE, 0x81), kMap = _IO(VFIO_TYPE, 0x85);
constexpr uint32_t kFixedIova = 1, kWriteable = 2, kReadable = 4;

// "vfio0" or so: the device's own node, which it has beside that of its group.
std::string node_of(const std::string& address) {
  std::string found;
  DIR* folder = opendir(("/sys/bus/pci/devices/" + address + "/vfio-dev").c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') found = entry->d_name;
  }
  closedir(folder);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using guests::check;
  const std::string node = node_of(argv[1]);
  const int device = open(("/dev/vfio/devices/" + node).c_str(), O_RDWR | O_CLOEXEC);
  BindIommufd bind;
  bind.iommufd = open("/dev/iommu", O_RDWR | O_CLOEXEC);
  check(device >= 0 && bind.iommufd >= 0 && ioctl(device, kBind, &bind) == 0, "bound", "%s: %s", node.c_str(),
        std::strerror(errno));
  AllocateAddressSpace space;
  AttachPageTable table;
  const bool is_allocated = ioctl(bind.iommufd, kAllocate, &space) == 0;
  table.id = space.id;
  check(is_allocated && ioctl(device, kAttach, &table) == 0, "attached", "address space %u: %s", space.id,
        std::strerror(errno));
  MapMemory mapping;
  mapping.length = size_t{1} << 20;
  void* memory = mmap(nullptr, mapping.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapping.flags = kFixedIova | kWriteable | kReadable;
  mapping.id = space.id;
  mapping.address = reinterpret_cast<uintptr_t>(memory);
  mapping.iova = uint64_t{1} << 30;
  check(ioctl(bind.iommufd, kMap, &mapping) == 0, "mapped", "1 MiB at 1 GiB: %s", std::strerror(errno));
  vfio_region_info bar{};
  bar.argsz = sizeof bar;
  bar.index = VFIO_PCI_BAR0_REGION_INDEX;
  void* registers = MAP_FAILED;
  if (ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &bar) == 0)
    registers = mmap(nullptr, bar.size, PROT_READ, MAP_SHARED, device, static_cast<off_t>(bar.offset));
  const uint32_t version =
      registers == MAP_FAILED ? 0 : *reinterpret_cast<volatile uint32_t*>(static_cast<char*>(registers) + 8);
  check(version >= 0x10000, "registers", "NVMe %u.%u", version >> 16, version >> 8 & 0xff);
  return 0;
}
