// Drives as backends, through VFIO.
#pragma once

#include <memory>
#include <string>

#include "driver/native/nvme/nvme_controller.hpp"
#include "tests/native/conformance/backend.hpp"

namespace bamquery::conformance {

struct NvmeOptions {
  std::string address;  ///< PCI address of a drive that is bound to vfio-pci.
  bool writable = false;
  std::uint64_t contents = 0;               ///< Of all its namespaces: see Space.
  std::uint64_t patterned_bytes = 4 << 20;  ///< The same; checks that write do so behind them.
  DoorbellKind doorbells = DoorbellKind::kAutomatic;
  std::uint32_t block_bytes = 0;  ///< LBA size of the namespaces that are checked; 0: of the first.
};

/// Opens the drive, and keeps it. StorageError, NvmeError; std::invalid_argument if it has no such namespace.
std::unique_ptr<Backend> make_nvme_backend(const NvmeOptions& options);

}  // namespace bamquery::conformance
