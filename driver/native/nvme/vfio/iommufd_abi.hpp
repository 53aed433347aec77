// The part of the kernel's iommufd interface (linux/iommufd.h and linux/vfio.h of Linux 6.6) that
// iommufd_device.cpp uses: headers of many a system are older than its kernel.
#pragma once

#include <linux/vfio.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace bamquery::vfio::iommufd {

// Numbers of ioctls, of ';' as VFIO's.
inline constexpr unsigned long kAllocate = _IO(';', 0x81);          // IOMMU_IOAS_ALLOC
inline constexpr unsigned long kRanges = _IO(';', 0x84);            // IOMMU_IOAS_IOVA_RANGES
inline constexpr unsigned long kMap = _IO(';', 0x85);               // IOMMU_IOAS_MAP
inline constexpr unsigned long kUnmap = _IO(';', 0x86);             // IOMMU_IOAS_UNMAP
inline constexpr unsigned long kBind = _IO(';', VFIO_BASE + 18);    // VFIO_DEVICE_BIND_IOMMUFD
inline constexpr unsigned long kAttach = _IO(';', VFIO_BASE + 19);  // VFIO_DEVICE_ATTACH_IOMMUFD_PT

inline constexpr std::uint32_t kFixedAddress = 1u << 0;  // IOMMU_IOAS_MAP_FIXED_IOVA
inline constexpr std::uint32_t kWriteable = 1u << 1;     // IOMMU_IOAS_MAP_WRITEABLE
inline constexpr std::uint32_t kReadable = 1u << 2;      // IOMMU_IOAS_MAP_READABLE

struct Allocate {
  std::uint32_t size = sizeof(Allocate);
  std::uint32_t flags = 0;
  std::uint32_t space = 0;
};
static_assert(sizeof(Allocate) == 12);

struct Range {
  std::uint64_t first;
  std::uint64_t last;
};

struct Ranges {
  std::uint32_t size = sizeof(Ranges);
  std::uint32_t space = 0;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::uint64_t ranges = 0;  ///< An address.
  std::uint64_t alignment = 0;
};
static_assert(sizeof(Ranges) == 32);

struct Map {
  std::uint32_t size = sizeof(Map);
  std::uint32_t flags = 0;
  std::uint32_t space = 0;
  std::uint32_t reserved = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t iova = 0;
};
static_assert(sizeof(Map) == 40);

struct Unmap {
  std::uint32_t size = sizeof(Unmap);
  std::uint32_t space = 0;
  std::uint64_t iova = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Unmap) == 24);

struct Bind {
  std::uint32_t size = sizeof(Bind);
  std::uint32_t flags = 0;
  std::int32_t file = -1;
  std::uint32_t device = 0;
};
static_assert(sizeof(Bind) == 16);

struct Attach {
  std::uint32_t size = sizeof(Attach);
  std::uint32_t flags = 0;
  std::uint32_t space = 0;
};
static_assert(sizeof(Attach) == 12);

}  // namespace bamquery::vfio::iommufd
