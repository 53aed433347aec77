// Looks at NVMe controllers through VFIO, without a driver of ours: `probe ADDRESS...`.
#include <string>

#include "check.hpp"
#include "device.hpp"

namespace {

using guests::check;

void probe(const std::string& address, const std::string& drive) {
  const int group = guests::group_of(address);
  check(group >= 0, (drive + "/group").c_str(), "%s is in IOMMU group %d", address.c_str(), group);
  try {
    const guests::Device device(address);
    check(device.is_viable(), (drive + "/viable").c_str(), "the group is %s",
          device.is_viable() ? "viable" : "not viable: it has devices that are not bound to vfio-pci");
    const uint32_t capabilities = device.read32(0), version = device.read32(8);  // CAP, low half, and VS
    const uint32_t entries = (capabilities & 0xffff) + 1;                        // CAP.MQES
    check(version >= 0x10000 && version != ~0u && entries >= 2, (drive + "/registers").c_str(),
          "NVMe %u.%u, queues of up to %u entries, BAR0 has %zu bytes", version >> 16, version >> 8 & 0xff,
          entries, device.bar_bytes());
  } catch (const std::runtime_error& error) {
    check(false, (drive + "/registers").c_str(), "%s", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) probe(argv[i], "drive" + std::to_string(i - 1));
  return 0;
}
