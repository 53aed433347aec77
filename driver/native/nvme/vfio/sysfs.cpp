#include "driver/native/nvme/vfio/sysfs.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "driver/native/errors.hpp"

namespace bamquery::vfio {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_name(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.filename().string();
}

bool is_address(const std::string& text) {
  return std::ranges::all_of(text, [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f') || each == ':' || each == '.';
  });
}

bool is_vfio(const std::string& driver) {
  return driver == "vfio-pci" || driver.ends_with("-vfio-pci") || driver.ends_with("_vfio_pci");
}

}  // namespace

PciFunction::PciFunction(const std::string& address, fs::path root)
    : root_(std::move(root)), address_(address) {
  std::ranges::transform(address_, address_.begin(), [](char each) {
    return each >= 'A' && each <= 'F' ? static_cast<char>(each - 'A' + 'a') : each;
  });
  if (std::ranges::count(address_, ':') == 1) address_ = "0000:" + address_;
  folder_ = root_ / "sys/bus/pci/devices" / address_;
  std::error_code error;
  if (!is_address(address_) || address_.empty() || !fs::exists(folder_, error)) {
    throw StorageError(address,
                       "there is no PCI device at " + address + "; `bamquery nvme list` shows all drives");
  }
}

std::string PciFunction::driver() const { return link_name(folder_ / "driver"); }

bool PciFunction::is_nvme() const {
  // Mass storage, non-volatile memory, NVM Express.
  return text_of(folder_ / "class") == "0x010802";
}

std::optional<int> PciFunction::group() const {
  const std::string name = link_name(folder_ / "iommu_group");
  if (name.empty() || !std::ranges::all_of(name, [](char each) { return each >= '0' && each <= '9'; })) {
    return std::nullopt;
  }
  return std::stoi(name);
}

std::vector<PciFunction::Member> PciFunction::group_members() const {
  std::vector<Member> members;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / "iommu_group/devices", error)) {
    const std::string address = entry.path().filename().string();
    members.push_back({address, link_name(root_ / "sys/bus/pci/devices" / address / "driver")});
  }
  std::ranges::sort(members, {}, &Member::address);
  return members;
}

std::optional<std::string> PciFunction::device_file() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / "vfio-dev", error)) {
    return entry.path().filename().string();
  }
  return std::nullopt;
}

std::string refusal(const PciFunction& function) {
  const std::string& address = function.address();
  if (!function.is_nvme()) return address + " is no NVMe controller; `bamquery nvme list` shows all";
  if (!function.group()) {
    return address +
           " is in no IOMMU group: nothing would keep the drive from other memory. Switch the IOMMU on in "
           "the "
           "firmware (VT-d, AMD-Vi), and for the kernel (intel_iommu=on)";
  }
  const std::string driver = function.driver();
  if (!is_vfio(driver)) {
    return address + " belongs to " + (driver.empty() ? "no driver" : "the kernel's driver " + driver) +
           ", not to vfio-pci; `bamquery nvme bind " + address + "` hands it over";
  }
  std::string others;
  for (const PciFunction::Member& member : function.group_members()) {
    // Bridges that the kernel drives itself do no DMA of their own.
    if (member.address == address || member.driver.empty() || is_vfio(member.driver) ||
        member.driver == "pcieport" || member.driver == "pci-stub") {
      continue;
    }
    others += (others.empty() ? "" : ", ") + member.address + " (" + member.driver + ")";
  }
  if (!others.empty()) {
    return address + " shares IOMMU group " + std::to_string(*function.group()) + " with " + others +
           ", which could reach the same memory: bind them to vfio-pci, too, or take a slot that isolates "
           "the drive";
  }
  return "";
}

}  // namespace bamquery::vfio
