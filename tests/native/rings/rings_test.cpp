// Queue pairs, their pool and their memory, driven by CPU threads against a controller that runs here.
// Usage: rings_test, or rings_test stress SECONDS SEED

#include "tests/native/rings/rings_test.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int count, char** arguments) {
  if (count == 4 && std::string(arguments[1]) == "stress") {
    bamquery::stress_rings(std::atof(arguments[2]), static_cast<std::uint32_t>(std::atol(arguments[3])));
  } else {
    bamquery::test_queue_memory();
    bamquery::test_queue_pair();
    bamquery::test_queue_pool();
    bamquery::test_serviced_pairs();
  }
  std::printf("all is well\n");
}
