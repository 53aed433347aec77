#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

constexpr std::size_t kBarBytes = 16384;
constexpr std::uint32_t kNormalShutdown = 1u << 14;
// Properties and the admin queue's tail. I/O queues' doorbells also move after a read, as heads are told.
constexpr std::size_t kAdminBytes = kDoorbellsOffset + 4;

// A process that opens a drive and ends so; what its registers say afterwards.
std::uint32_t configuration_after(void (*end)(), int status_wanted) {
  void* const bar = mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(bar != MAP_FAILED);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    // Left behind, as by a program that ends without closing what it has.
    static auto* const fake = new FakeNvme({.bar_bytes = kBarBytes, .bar = static_cast<std::byte*>(bar)});
    static auto* const drive = new std::shared_ptr<NvmeDrive>(open(*fake));
    CHECK((*drive)->namespaces().size() == 1);
    end();
    std::abort();
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == status_wanted);
  const std::uint32_t configuration = *reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(bar) + 0x14);
  munmap(bar, kBarBytes);
  return configuration;
}

#if !defined(__SANITIZE_THREAD__)
// A child's end is not its parent's.
void fork_and_exit() {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGTERM);
    std::abort();
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == SIGTERM);
  raise(SIGKILL);
}

// What a process has when it forks: in the child all of it ends, and nothing of the parent's does.
void test_children() {
  void* const bar = mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(bar != MAP_FAILED);
  for (const DoorbellKind kind : {DoorbellKind::kRegisters, DoorbellKind::kForwarded}) {
    FakeNvme fake({.bar_bytes = kBarBytes, .bar = static_cast<std::byte*>(bar)});
    auto drive = open(fake);
    QueueShape shape{.leased_pairs = 1, .shared_pairs = 0, .depth = 8, .slots = 7};
    shape.doorbell_stride = drive->limits().doorbell_stride;
    shape.block_bytes = drive->namespaces().at(0).block_bytes;
    auto memory = std::make_unique<QueueMemory>(shape);
    auto controller = std::make_unique<NvmeController>(drive, *memory, kind);
    auto activity = std::make_unique<Controller::Activity>(*controller);
    CpuQueueClient client(*memory, *controller);
    std::vector<std::byte> block(shape.block_bytes);
    client.read(1, 0, block, Deadline::in(kLong), nullptr);
    const std::vector<std::byte> before(static_cast<std::byte*>(bar),
                                        static_cast<std::byte*>(bar) + kAdminBytes);

    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);  // ends it where it waits for a thread that it does not have
      activity.reset();
      controller.reset();
      memory.reset();
      drive.reset();
      _exit(fake.unmapped == 0 ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(std::memcmp(bar, before.data(), kAdminBytes) == 0);
    client.read(1, 0, block, Deadline::in(kLong), nullptr);
    CHECK(controller->stop(Deadline::in(kLong)));
  }
  munmap(bar, kBarBytes);
}
#endif

}  // namespace

void test_exits() {
  const std::uint32_t after_exit = configuration_after([] { std::exit(0); }, 0);
  CHECK((after_exit & 1) == 0);
  const std::uint32_t after_signal = configuration_after([] { raise(SIGTERM); }, SIGTERM);
  CHECK((after_signal & 1) == 1 && (after_signal & 3u << 14) == kNormalShutdown);
  const std::uint32_t after_kill = configuration_after([] { raise(SIGKILL); }, SIGKILL);
  CHECK((after_kill & 1) == 1 && (after_kill & 3u << 14) == 0);
#if !defined(__SANITIZE_THREAD__)  // which does not support signals of children of processes with threads
  CHECK((configuration_after(fork_and_exit, SIGKILL) & 3u << 14) == 0);
  test_children();
#endif
}

}  // namespace bamquery::test
