// What happens to a controller while clients are at it: files come, go and shrink, it stops, sleeps, is
// forked.

#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/native/controller/controller_test.hpp"

namespace bamquery::test {
namespace {

// A client that reads as fast as it can; returns how its commands ended.
void read_on(const Pool& pool, SoftwareController& controller, std::atomic<std::uint32_t>& nsid,
             const std::atomic<bool>& enough,
             const std::function<void(std::uint32_t, Status, std::byte*)>& saw) {
  Lease lease(pool, controller);
  CHECK(lease.begun().ok());
  while (!enough.load()) {
    std::uint32_t slot = 0;
    CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
    const std::uint32_t asked = nsid.load();
    CHECK(lease.pair().issue(slot, {Opcode::kRead, asked, 9, 4}).ok());
    saw(asked, lease.pair().wait(slot, in_seconds(60)), lease.pair().landing(slot));
    lease.pair().release_slot(slot);
  }
  CHECK(lease.end(in_seconds(60)).ok());
}

// Namespaces come and go while clients read: every answer is the content or "no such namespace".
void files_come_and_go(const std::string& folder, int controller_threads) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(controller_threads));
  controller.start();
  const auto activity = controller.activity();
  const Pool pool(memory);
  const std::string path = make_file(folder + "/goes", 1 << 16, 0x42);
  std::atomic<std::uint32_t> nsid{controller.add_namespace(Namespace::mapped_file(path, 512, false))};
  std::atomic<bool> enough{false};
  std::atomic<std::uint64_t> good{0}, gone{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      read_on(pool, controller, nsid, enough, [&](std::uint32_t, Status status, const std::byte* bytes) {
        if (status.ok()) CHECK(bytes[0] == std::byte{0x42} && bytes[2047] == std::byte{0x42});
        if (!status.ok()) CHECK(status == status::kInvalidNamespace);
        (status.ok() ? good : gone).fetch_add(1);
      });
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t before = nsid.load();
    const bool direct = i % 3 == 0;
    if (i % 2 == 0) CHECK(controller.remove_namespace(before, in_seconds(60)));
    nsid = controller.add_namespace(direct ? Namespace::direct_file(path, 512, false)
                                           : Namespace::mapped_file(path, 512, false));
    if (i % 2 != 0) CHECK(controller.remove_namespace(before, in_seconds(60)));
    const std::uint64_t seen = good.load();
    await([&] { return good.load() > seen; });
  }
  enough = true;
  for (std::thread& client : clients) client.join();
  CHECK(good.load() >= 200);
}

// The file shrinks and grows under readers: content or "unrecovered read", nothing else, and no SIGBUS.
void truncated_under_load(const std::string& folder) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(1));
  controller.start();
  const auto activity = controller.activity();
  const Pool pool(memory);
  const std::string path = make_file(folder + "/shrinks", 1 << 16, 0x42);
  std::atomic<std::uint32_t> nsid{controller.add_namespace(Namespace::mapped_file(path, 512, false))};
  std::atomic<bool> enough{false};
  std::atomic<std::uint64_t> good{0}, lost{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      read_on(pool, controller, nsid, enough, [&](std::uint32_t, Status status, const std::byte*) {
        if (!status.ok()) CHECK(status == status::kUnrecoveredRead);
        (status.ok() ? good : lost).fetch_add(1);
      });
    });
  }
  for (int i = 0; i < 50; ++i) {
    CHECK(truncate(path.c_str(), i % 2 == 0 ? 0 : 1 << 16) == 0);
    std::atomic<std::uint64_t>& expected = i % 2 == 0 ? lost : good;
    const std::uint64_t seen = expected.load();
    await([&] { return expected.load() > seen; });
  }
  enough = true;
  for (std::thread& client : clients) client.join();
}

// Stopping answers what is there, held or not, and starting goes on where the rings are.
void stops_under_load(int controller_threads) {
  QueueMemory memory(shape(2, 16, 4096));
  SoftwareController controller(memory, threads(controller_threads));
  const std::uint32_t nsid = controller.add_namespace(Namespace::memory(1 << 20, 512));
  FaultRule delay = rule(FaultKind::kDelay);
  delay.delay_ns = 3600 * kSecond;
  delay.probability = 0.2;
  controller.set_faults({delay}, 3);
  const auto activity = controller.activity();
  const Pool pool(memory);
  std::uint64_t deleted = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 19) controller.set_faults({}, 3);
    controller.start();
    Lease lease(pool, controller);
    CHECK(lease.begun().ok());
    std::vector<std::uint32_t> slots(15);
    for (std::uint32_t& slot : slots) {
      CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
      CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
    }
    if (round % 2 == 0 || round == 19) controller.service();
    if (round < 19) CHECK(controller.stop(in_seconds(60)));
    for (const std::uint32_t slot : slots) {
      const Status status = lease.pair().wait(slot, in_seconds(60));
      CHECK(status.ok() || (status == status::kQueueDeleted && round < 19));
      deleted += status.ok() ? 0 : 1;
      lease.pair().release_slot(slot);
    }
    CHECK(lease.end(in_seconds(60)).ok());
  }
  CHECK(deleted > 0);
}

// Threads sleep without activity, serve with it, and a forked child does not wait for them.
void threads_park_and_wake() {
  QueueMemory memory(shape(1, 16, 4096));
  auto controller = std::make_unique<SoftwareController>(memory, threads(2));
  CHECK(controller->threads() == 1);  // no more than queue pairs
  const std::uint32_t nsid = controller->add_namespace(Namespace::memory(1 << 20, 512));
  controller->start();
  const Pool pool(memory);
  Lease lease(pool, *controller);
  const auto cpu = [&] { return controller->statistics().thread_seconds[0]; };
  double parked = 0;
  await([&] {
    const double before = cpu();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    parked = cpu();
    return parked == before;  // not a microsecond
  });
  std::uint32_t slot = 0;
  CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
  CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
  controller->wake();
  CHECK(lease.pair().wait(slot, in_seconds(60)).ok());
  {
    const auto activity = controller->activity();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
    CHECK(lease.pair().wait(slot, in_seconds(60)).ok());
  }
  CHECK(cpu() > parked);
  lease.pair().release_slot(slot);
  CHECK(lease.end(in_seconds(60)).ok());
#if !defined(__SANITIZE_THREAD__)  // which cannot fork while threads run
  await([&] {
    const double before = cpu();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return cpu() == before;  // the thread sleeps, which the child's copy of it never ends
  });
  const pid_t child = fork();
  if (child == 0) {
    controller.reset();
    _exit(7);
  }
  int how = 0;
  CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 7);
#endif
}

// After a broken protocol the queues are deleted, created again, and work.
void recreates_queues() {
  QueueMemory memory(shape(1, 8, 4096));
  SoftwareController controller(memory, threads(1));
  const std::uint32_t nsid = controller.add_namespace(Namespace::memory(1 << 20, 512));
  const auto activity = controller.activity();
  for (int round = 0; round < 2; ++round) {
    controller.start();
    const Pool pool(memory);
    Lease lease(pool, controller);
    // Commands under way may still be executed by the rules before.
    for (int i = 0; i < 20 || !lease.pair().pair().broken(); ++i) {
      CHECK(i < 10'000);
      if (i == 19) controller.set_faults({rule(FaultKind::kWrongHead)}, 1);
      std::uint32_t slot = 0;
      CHECK(lease.pair().acquire_slot(in_seconds(60), slot).ok());
      CHECK(lease.pair().issue(slot, {Opcode::kRead, nsid, 1, 8}).ok());
      const Status status = lease.pair().wait(slot, in_seconds(60));
      CHECK(status.ok() || (i >= 19 && status == status::kQueueBroken));
      if (!loses_slot(status)) lease.pair().release_slot(slot);
    }
    controller.set_faults({}, 1);
    CHECK(controller.stop(in_seconds(60)));
    controller.recreate_queues();
  }
}

}  // namespace

void under_load(const std::string& folder) {
  for (const int controller_threads : {0, 1}) {
    files_come_and_go(folder, controller_threads);
    stops_under_load(controller_threads);
  }
  if (kSurvivesTruncation) truncated_under_load(folder);
  threads_park_and_wake();
  recreates_queues();
}

}  // namespace bamquery::test
