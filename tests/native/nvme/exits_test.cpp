#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

constexpr std::size_t kBarBytes = 16384;
constexpr std::uint32_t kNormalShutdown = 1u << 14;

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
#endif
}

}  // namespace bamquery::test
