// A drive through VFIO's groups and containers: every kernel that has VFIO has these.
#pragma once

#include <memory>
#include <string>

#include "driver/native/nvme/nvme_device.hpp"
#include "driver/native/nvme/vfio/descriptor.hpp"
#include "driver/native/nvme/vfio/device_file.hpp"
#include "driver/native/nvme/vfio/sysfs.hpp"

namespace bamquery::vfio {

class GroupDevice final : public NvmeDevice {
 public:
  /// StorageError says what is in the way.
  explicit GroupDevice(const PciFunction& function);

  const std::string& name() const override { return device_->address(); }
  std::string interface() const override;
  std::span<std::byte> registers() const override { return device_->registers(); }
  std::vector<IovaRange> iova_ranges() const override;
  void map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) override;
  bool unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept override;
  void set_bus_master(bool on) override { device_->set_bus_master(on); }
  bool reset() noexcept override { return device_->reset(); }

 private:
  int number_;
  Descriptor container_;
  Descriptor group_;
  std::unique_ptr<DeviceFile> device_;
};

}  // namespace bamquery::vfio
