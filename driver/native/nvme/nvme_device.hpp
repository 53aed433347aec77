// A PCI function with an NVMe controller, as the driver uses it: registers, and memory that it may reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/native/queues/queue_memory.hpp"

namespace bamquery {

/// Addresses as a device uses them, `last` included.
struct IovaRange {
  std::uint64_t first;
  std::uint64_t last;

  friend bool operator==(const IovaRange&, const IovaRange&) = default;
};

/// The seam between the driver and what gives a process a device: VFIO, or a fake of tests. Failures are
/// StorageError with the device's name as path.
class NvmeDevice {
 public:
  NvmeDevice() = default;
  NvmeDevice(const NvmeDevice&) = delete;
  NvmeDevice& operator=(const NvmeDevice&) = delete;
  /// The device reaches no memory any more, and is reset.
  virtual ~NvmeDevice() = default;

  /// Its PCI address, as "0000:5e:00.0".
  virtual const std::string& name() const = 0;
  /// How it is reached, in words.
  virtual std::string interface() const = 0;

  /// BAR0.
  virtual std::span<std::byte> registers() const = 0;

  /// What may be mapped, in order.
  virtual std::vector<IovaRange> iova_ranges() const = 0;

  /// Lets the device read or write whole pages of this process at an address. They stay where they are.
  virtual void map_dma(std::span<std::byte> pages, std::uint64_t iova, QueueAccess access) = 0;
  /// False: it could not be undone, and the address is not to be used again.
  virtual bool unmap_dma(std::uint64_t iova, std::uint64_t bytes) noexcept = 0;

  /// Whether it may read and write memory at all; its interrupts are off.
  virtual void set_bus_master(bool on) = 0;
  /// Resets the function, whatever state it is in; false: it has no such reset, or that failed.
  virtual bool reset() noexcept = 0;
};

}  // namespace bamquery
