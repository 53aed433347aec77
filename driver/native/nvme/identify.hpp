// What a drive says of itself and of its namespaces, checked: nothing it says is believed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bamquery {

/// Of the data that Identify returns for a controller (NVM Express Base Specification 2.0, figure 275).
struct ControllerData {
  std::string serial, model, firmware;  ///< Printable characters, without the spaces around them.
  std::uint32_t vendor = 0;             ///< PCI vendor.
  std::uint32_t controller_id = 0;      ///< CNTLID
  std::uint32_t version = 0;            ///< VER: major << 16 | minor << 8 | tertiary; 0 before 1.2.
  std::uint32_t transfer_shift = 0;     ///< MDTS: transfers are up to 4,096 << this; 0: no limit.
  std::uint32_t namespace_count = 0;    ///< NN: the highest number that a namespace may have.
  bool has_volatile_cache = false;      ///< VWC
  bool has_doorbell_buffers = false;    ///< OACS bit 8.
  /// Why the driver cannot work with it; empty if it can.
  std::string refusal;

  static ControllerData parse(std::span<const std::byte> page);
};

/// Of the data that Identify returns for a namespace (NVM Command Set Specification 1.0, figure 97).
struct NamespaceData {
  std::uint32_t nsid = 0;
  std::uint64_t blocks = 0;           ///< NSZE
  std::uint64_t capacity_blocks = 0;  ///< NCAP
  std::uint32_t block_bytes = 0;      ///< 0: what the drive says cannot be.
  std::uint32_t metadata_bytes = 0;   ///< Of each block.
  std::uint32_t protection = 0;       ///< Type of protection information; 0: none.
  bool write_protected = false;
  /// Why it is not for this driver; empty if it is.
  std::string refusal;

  static NamespaceData parse(std::uint32_t nsid, std::span<const std::byte> page);
};

/// The command set of a namespace by its descriptors; 0, NVM, where none says otherwise (base specification,
/// figure 277).
std::uint8_t command_set(std::span<const std::byte> descriptors);

/// The numbers in a list of active namespaces: those above `after`, as long as they rise.
std::vector<std::uint32_t> namespace_numbers(std::span<const std::byte> page, std::uint32_t after);

}  // namespace bamquery
