// The driver of NVMe drives against a controller in a thread. Usage: nvme_test FOLDER SEED

#include "tests/native/nvme/nvme_test.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  CHECK(argc == 3);
  using namespace bamquery::test;
  test_exits();  // forks: before there are threads
  test_addresses();
  test_identify();
  test_sysfs(argv[1]);
  test_life();
  test_dead_drives();
  test_commands();
  test_doorbells();
  test_resets();
  test_fuzz(static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  std::puts("all tests of the NVMe driver passed");
  return 0;
}
