// What the kernel says of a PCI function in /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bamquery::vfio {

/// `root` stands for "/" in tests.
class PciFunction {
 public:
  /// StorageError: there is none at this address. "5e:00.0" is in domain 0000.
  explicit PciFunction(const std::string& address, std::filesystem::path root = "/");

  /// With its domain, as "0000:5e:00.0".
  const std::string& address() const { return address_; }

  /// The kernel's driver that has it; empty: none.
  std::string driver() const;
  bool is_nvme() const;
  /// None without an IOMMU.
  std::optional<int> group() const;

  struct Member {
    std::string address;
    std::string driver;
  };
  /// All that its group isolates only together, itself among them.
  std::vector<Member> group_members() const;

  /// As "vfio0", where the kernel has a device file of its own for it.
  std::optional<std::string> device_file() const;

 private:
  std::filesystem::path root_;
  std::filesystem::path folder_;
  std::string address_;
};

/// Why the function is not to be driven from user space now, with the commands that would help; empty if it
/// may be. Whether files may be opened shows when they are.
std::string refusal(const PciFunction& function);

}  // namespace bamquery::vfio
