// Owns a device and pins memory for it, until somebody ends it: `holder ADDRESS`. Prints "holding" once it
// does.
#include <cstdio>

#include "device.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  constexpr size_t bytes = size_t{16} << 20;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  guests::Device device(argv[1]);
  device.map(memory, bytes, uint64_t{1} << 30);
  std::puts("holding");
  std::fflush(stdout);
  pause();
  return 0;
}
