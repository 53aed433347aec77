#include "driver/native/nvme/vfio/sysfs.hpp"

#include <filesystem>
#include <fstream>

#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

namespace fs = std::filesystem;

class Tree {
 public:
  explicit Tree(fs::path root) : root_(std::move(root)) { fs::remove_all(root_); }

  void add(const std::string& address, const char* driver, const char* kind = "0x010802",
           const char* group = "7") {
    const fs::path device = root_ / "sys/bus/pci/devices" / address;
    fs::create_directories(device);
    std::ofstream(device / "class") << kind << '\n';
    if (*driver != 0) {
      fs::create_directories(root_ / "sys/bus/pci/drivers" / driver);
      fs::create_symlink(root_ / "sys/bus/pci/drivers" / driver, device / "driver");
    }
    if (*group == 0) return;
    const fs::path folder = root_ / "sys/kernel/iommu_groups" / group;
    fs::create_directories(folder / "devices" / address);
    fs::create_symlink(folder, device / "iommu_group");
  }
  std::string refusal(const std::string& address) const {
    return vfio::refusal(vfio::PciFunction(address, root_));
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

}  // namespace

void test_sysfs(const std::string& folder) {
  Tree tree(fs::path(folder) / "root");
  tree.add("0000:01:00.0", "vfio-pci");
  CHECK(tree.refusal("0000:01:00.0").empty() && tree.refusal("01:00.0").empty());
  const vfio::PciFunction function("01:00.0", tree.root());
  CHECK(function.address() == "0000:01:00.0" && function.group() == 7 && !function.device_file());
  tree.add("0000:02:00.0", "nvme", "0x010802", "8");
  CHECK(says(tree.refusal("0000:02:00.0"), "driver nvme") &&
        says(tree.refusal("0000:02:00.0"), "bamquery nvme bind 0000:02:00.0"));
  tree.add("0000:03:00.0", "", "0x010802", "9");
  CHECK(says(tree.refusal("0000:03:00.0"), "no driver"));
  tree.add("0000:04:00.0", "vfio-pci", "0x010802", "");
  CHECK(says(tree.refusal("0000:04:00.0"), "no IOMMU group"));
  tree.add("0000:05:00.0", "vfio-pci", "0x020000");
  CHECK(says(tree.refusal("0000:05:00.0"), "no NVMe controller"));
  // Others in the group: a bridge and what nobody drives do not matter.
  tree.add("0000:01:00.1", "pcieport", "0x060400");
  tree.add("0000:01:00.2", "", "0x020000");
  CHECK(tree.refusal("0000:01:00.0").empty());
  tree.add("0000:01:00.3", "e1000e", "0x020000");
  CHECK(says(tree.refusal("0000:01:00.0"), "group 7 with 0000:01:00.3 (e1000e)"));
  for (const char* const none : {"0000:09:00.0", "", "../../x", "nonsense"}) {
    CHECK(says(error_of([&] { tree.refusal(none); }), "there is no PCI device"));
  }
}

}  // namespace bamquery::test
