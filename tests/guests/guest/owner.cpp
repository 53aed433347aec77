// Owns a drive: `owner reads ADDRESS` reads until it is ended, and prints "reading" once it does; `owner
// verifies ADDRESS` reads what it held at first; `owner refused ADDRESS USER` says why it may not have it, as
// that user if there is one; `owner lists ADDRESS` prints its namespaces.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "driven.hpp"

namespace {

using namespace guests;

int reads(const std::string& address) {
  const auto drive = open_drive(address, false);
  QueueMemory memory(shape_for(*drive, 64, 4096));
  NvmeController controller(drive, memory);
  CpuQueueClient client(memory, controller);
  std::vector<std::byte> data(1 << 20);
  for (int round = 0;; ++round) {
    client.read(1, 0, data, patience(), {});
    if (round == 3) {
      std::puts("reading");
      std::fflush(stdout);
    }
  }
}

int verifies(const std::string& address) {
  const auto drive = open_drive(address, false);
  QueueMemory memory(shape_for(*drive, 64, 65536));
  NvmeController controller(drive, memory);
  CpuQueueClient client(memory, controller);
  std::vector<std::byte> data(1 << 20);
  client.read(1, 0, data, patience(), {});
  const std::size_t wrong = differences(0, 0, memory.shape().block_bytes, data);
  const unsigned refused = status_of([&] { client.write(1, 0, data, patience(), {}); });
  std::printf("%zu words differ; a write gives 0x%x; ready after %.1f ms\n", wrong, refused,
              drive->statistics().bring_up_seconds * 1e3);
  return wrong == 0 && refused == status::kReadOnly.code ? 0 : 1;
}

int refused(const std::string& address, const char* user) {
  if (user != nullptr) {
    const rlimit little{64 << 10, 64 << 10};
    const auto number = static_cast<uid_t>(std::atoi(user));
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || setuid(number) != 0) return 2;
  }
  const std::string why = error_of([&] {
    const auto drive = open_drive(address, false);
    QueueMemory memory(shape_for(*drive, 64, 65536));
    NvmeController(drive, memory);
  });
  std::puts(why.c_str());
  return why.empty() ? 1 : 0;
}

int lists(const std::string& address) {
  const auto drive = open_drive(address, false);
  for (const NamespaceData& each : drive->namespaces()) {
    std::printf("namespace %u: %llu blocks of %u bytes; %s\n", each.nsid,
                static_cast<unsigned long long>(each.blocks), each.block_bytes,
                each.refusal.empty() ? "taken" : each.refusal.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[1];
  try {
    if (mode == "reads") return reads(argv[2]);
    if (mode == "verifies") return verifies(argv[2]);
    if (mode == "refused") return refused(argv[2], argc > 3 ? argv[3] : nullptr);
    if (mode == "lists") return lists(argv[2]);
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 1;
  }
  return 2;
}
