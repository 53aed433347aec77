// Threads of this process drive rings that a guest's drive serves: the controller is nobody's whom we wrote.
// Arguments: the file of the memory that both see, reads of each thread. Prints results as a guest does.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "check.hpp"
#include "driver/native/controller/elsewhere_controller.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "pattern.hpp"
#include "shared_rings.hpp"

namespace {

using namespace bamquery;
using guests::check;
using guests::SharedRings;
using guests::Stage;

constexpr int kPatience = 100;
constexpr std::uint64_t kDeadlineNs = 20'000'000'000;
constexpr std::uint32_t kThreads = 4;

std::span<std::byte> mapped(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat about{};
  if (file < 0 || fstat(file, &about) != 0) return {};
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), size};
}

bool holds_pattern(std::span<const std::byte> bytes, std::uint64_t lba, std::uint32_t block_bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word != guests::pattern(0, lba + at / block_bytes, at % block_bytes / 8)) return false;
  }
  return true;
}

// Reads of 1 to 32 blocks anywhere, and what is wrong with them.
std::uint64_t read_randomly(CpuQueueClient& client, const SharedRings& rings, std::uint32_t seed,
                            std::uint64_t reads) {
  std::mt19937_64 random(seed);
  const std::uint32_t block = rings.shape.block_bytes;
  std::vector<std::byte> bytes;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < reads; ++i) {
    const std::uint64_t blocks = 1 + random() % 32;
    const std::uint64_t lba = random() % (rings.blocks - blocks);
    bytes.assign(blocks * block, std::byte{0xee});
    client.read(rings.nsid, lba, bytes, Deadline::in(kDeadlineNs), nullptr);
    if (!holds_pattern(bytes, lba, block)) ++wrong;
  }
  return wrong;
}

// The status that a read of one block ends with.
std::uint32_t status_of(CpuQueueClient& client, std::uint32_t nsid, std::uint64_t lba,
                        std::uint32_t block_bytes) {
  std::vector<std::byte> bytes(block_bytes);
  try {
    client.read(nsid, lba, bytes, Deadline::in(kDeadlineNs), nullptr);
  } catch (const NvmeError& error) {
    return error.status().code;
  }
  return 0;
}

int drive(std::span<std::byte> memory, std::uint64_t reads) {
  SharedRings& rings = guests::shared_rings(memory.data());
  if (!check(guests::await(rings, Stage::kServed, kPatience), "served", "by the guest")) return 1;
  QueueMemory queues(rings.shape, memory.subspan(SharedRings::kPage),
                     {.bus = rings.bus, .first_queue = rings.queue, .read_only = true});
  ElsewhereController controller({rings.nsid, rings.shape.block_bytes, rings.blocks,
                                  rings.blocks * rings.shape.block_bytes, false, true, "the guest's drive"});
  CpuQueueClient client(queues, controller);

  std::atomic<std::uint64_t> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (std::uint32_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      try {
        wrong += read_randomly(client, rings, number, reads);
      } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  check(wrong == 0 && failed == 0, "reads", "%llu by %u threads, %llu wrong",
        static_cast<unsigned long long>(reads * kThreads), kThreads, static_cast<unsigned long long>(wrong));

  const std::uint32_t block = rings.shape.block_bytes;
  const std::uint32_t beyond = status_of(client, rings.nsid, rings.blocks, block);
  check(beyond == 0x080, "beyond-the-end", "status %03xh", beyond);
  const std::uint32_t missing = status_of(client, 0x1000, 0, block);
  check(missing == 0x00b, "no-such-namespace", "status %03xh", missing);
  check(status_of(client, rings.nsid, 0, block) == 0, "after-errors", "reads go on");
  std::uint32_t refused = 0;
  try {
    std::vector<std::byte> bytes(block);
    client.write(rings.nsid, 0, bytes, Deadline::in(kDeadlineNs), nullptr);
  } catch (const NvmeError& error) {
    refused = error.status().code;
  }
  check(refused == status::kReadOnly.code, "no-write", "status %03xh", refused);
  const CpuQueueClient::Counts counts = client.settle();
  check(counts.missed == 0 && counts.broken == 0 && counts.quarantined == 0, "rings",
        "%llu errors, %llu missed", static_cast<unsigned long long>(counts.errors),
        static_cast<unsigned long long>(counts.missed));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::span<std::byte> memory = mapped(arguments[1]);
  if (!check(!memory.empty(), "mapped", "%zu bytes", memory.size())) return 1;
  const int result = drive(memory, std::strtoull(arguments[2], nullptr, 10));
  guests::shared_rings(memory.data()).stage.store(Stage::kDone, std::memory_order_release);
  return result;
}
