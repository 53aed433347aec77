#include "driver/native/nvme/vfio/open_device.hpp"

#include "driver/native/errors.hpp"
#include "driver/native/nvme/vfio/group_device.hpp"
#include "driver/native/nvme/vfio/iommufd_device.hpp"
#include "driver/native/nvme/vfio/sysfs.hpp"

namespace bamquery::vfio {

std::unique_ptr<NvmeDevice> open_device(const std::string& address, Interface interface) {
  const PciFunction function(address);
  if (const std::string why = refusal(function); !why.empty()) throw StorageError(function.address(), why);
  const bool by_iommufd = interface == Interface::kIommufd ||
                          (interface == Interface::kAutomatic && IommufdDevice::offered(function));
  if (by_iommufd) return std::make_unique<IommufdDevice>(function);
  return std::make_unique<GroupDevice>(function);
}

}  // namespace bamquery::vfio
