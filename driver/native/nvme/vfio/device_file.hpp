// A PCI function by the file that VFIO gives for it, by whichever interface it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/native/nvme/vfio/descriptor.hpp"

namespace bamquery::vfio {

class DeviceFile {
 public:
  /// Maps BAR0 and switches interrupts off. StorageError.
  DeviceFile(std::string address, Descriptor file);
  ~DeviceFile();
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  const std::string& address() const { return address_; }
  std::span<std::byte> registers() const { return registers_; }

  /// StorageError.
  void set_bus_master(bool on);
  bool reset() noexcept;

 private:
  void map_registers();
  void set_command(std::uint16_t set, std::uint16_t clear);

  std::string address_;
  Descriptor file_;
  std::span<std::byte> registers_;
  std::uint64_t configuration_ = 0;  ///< Where the file has the configuration space.
};

/// What a system call's failure means for pinning `bytes` of memory: a limit is named, and how to raise it.
/// StorageError.
[[noreturn]] void fail_to_map(const std::string& address, std::uint64_t bytes, int error);

/// The StorageError for a file of VFIO that cannot be opened, with what would help.
[[noreturn]] void fail_to_open(const std::string& address, const std::string& path, int error);

}  // namespace bamquery::vfio
