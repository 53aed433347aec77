// A drive by its PCI address.
#pragma once

#include <memory>
#include <string>

#include "driver/native/nvme/nvme_device.hpp"

namespace bamquery::vfio {

enum class Interface {
  kAutomatic,  ///< iommufd where the kernel offers it for the drive, else its group.
  kGroup,      ///< /dev/vfio/vfio and /dev/vfio/GROUP.
  kIommufd,    ///< /dev/iommu and /dev/vfio/devices/vfioN.
};

/// StorageError says what is in the way, and the commands that would help.
std::unique_ptr<NvmeDevice> open_device(const std::string& address,
                                        Interface interface = Interface::kAutomatic);

}  // namespace bamquery::vfio
