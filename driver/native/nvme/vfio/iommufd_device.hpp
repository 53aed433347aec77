// A drive through iommufd: a device file of its own for each function, from Linux 6.6 on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/native/nvme/nvme_device.hpp"
#include "driver/native/nvme/vfio/descriptor.hpp"
#include "driver/native/nvme/vfio/device_file.hpp"
#include "driver/native/nvme/vfio/sysfs.hpp"

namespace bamquery::vfio {

class IommufdDevice final : public NvmeDevice {
 public:
  /// Whether the kernel offers this for the function.
  static bool offered(const PciFunction& function);

  /// StorageError says what is in the way.
  explicit IommufdDevice(const PciFunction& function);

  const std::string& name() const override { return device_->address(); }
  std::string interface() const override { return "iommufd"; }
  std::span<std::byte> registers() const override { return device_->registers(); }
  std::vector<IovaRange> iova_ranges() const override;
  void map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) override;
  bool unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept override;
  void set_bus_master(bool on) override { device_->set_bus_master(on); }
  bool reset() noexcept override { return device_->reset(); }

 private:
  Descriptor iommu_;
  std::uint32_t space_ = 0;
  std::unique_ptr<DeviceFile> device_;
};

}  // namespace bamquery::vfio
