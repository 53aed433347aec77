#include "driver/native/controller/software_controller.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "driver/native/executors/direct_executor.hpp"

namespace bamquery {
namespace {

// Looks without work before a thread sleeps: some tens of microseconds, a few launches' worth.
constexpr std::uint32_t kSpins = 2000;
constexpr std::uint32_t kYields = 200;
constexpr std::uint64_t kShortestSleepNs = 50'000;
constexpr std::uint64_t kLongestSleepNs = 1'000'000;
// A namespace number is used again only when so many others wait for that: late commands name the old one.
constexpr std::size_t kNumbersKept = 1024;

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::uint64_t cpu_time_ns(clockid_t clock) {
  timespec time;
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

std::vector<ControllerQueueView> queue_views(const QueueMemory& memory) {
  std::vector<ControllerQueueView> views;
  for (std::uint32_t pair = 0; pair < memory.shape().pairs(); ++pair) {
    views.push_back({memory.submissions(pair), memory.completions(pair), memory.tail_doorbell(pair),
                     memory.head_doorbell(pair), memory.shape().depth, memory.queue_id(pair)});
  }
  return views;
}

BusArea area(std::span<const std::byte> bytes) {
  return {reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size()};
}

// Signals are for the program's own threads: Python expects them in its main thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // Faults must reach the bus guard's handler.
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

SoftwareController::SoftwareController(QueueMemory& memory, ControllerOptions options)
    : memory_(memory), threaded_(options.threads != 0) {
  if (!options.executors) options.executors = [](std::uint32_t depth) { return make_direct_executor(depth); };
  if (options.max_transfer_bytes < memory.shape().slot_bytes) {
    throw std::invalid_argument("the controller takes " + std::to_string(options.max_transfer_bytes) +
                                " bytes a command, and a slot has " +
                                std::to_string(memory.shape().slot_bytes));
  }
  ControllerWorker::Options worker;
  worker.limits = {area(memory.landing()), area(memory.prp_lists()), options.max_transfer_bytes};
  worker.stores = options.stores;
  worker.executors = options.executors;
  worker.executor_depth = options.executor_depth;

  // Without threads every pair is served by those who wait for it, apart from the others.
  const std::vector<ControllerQueueView> queues = queue_views(memory);
  std::size_t count = queues.size();
  if (options.threads < 0) count = static_cast<std::size_t>(std::clamp(processors() / 2, 1, 8));
  if (options.threads > 0) count = static_cast<std::size_t>(options.threads);
  count = std::min(count, queues.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<ControllerQueueView> share;
    for (std::size_t pair = i; pair < queues.size(); pair += count) share.push_back(queues[pair]);
    serves_.push_back(std::make_unique<Service>(share, board_, worker));
  }
}

SoftwareController::~SoftwareController() {
  if (process_ != 0 && process_ != getpid()) {
    for (const auto& service : serves_) {
      if (service->thread.joinable()) service->thread.detach();  // it is the parent's
    }
    // To the child they sleep for ever, and destroying what they sleep on would wait until they wake.
    (void)signals_.release();
    return;
  }
  stop(Deadline::in(1'000'000'000));
  for (const auto& service : serves_) {
    if (service->thread.joinable()) service->thread.join();
  }
}

std::uint32_t SoftwareController::add_namespace(std::shared_ptr<Namespace> added) {
  const std::lock_guard lock(namespaces_);
  std::uint32_t nsid = 0;
  if (free_numbers_.size() > kNumbersKept) {
    nsid = free_numbers_.front();
    free_numbers_.erase(free_numbers_.begin());
  }
  board_.update([&](Directory& directory) {
    if (nsid == 0) {
      directory.views.emplace_back();
      directory.owners.emplace_back();
      nsid = static_cast<std::uint32_t>(directory.views.size());
    }
    directory.views[nsid - 1] = added->view();
    directory.owners[nsid - 1] = std::move(added);
  });
  return nsid;
}

bool SoftwareController::remove_namespace(std::uint32_t nsid, Deadline deadline) {
  std::shared_ptr<Namespace> removed;
  {
    const std::lock_guard lock(namespaces_);
    removed = find_namespace(nsid);
    if (removed == nullptr) {
      throw std::invalid_argument("there is no namespace " + std::to_string(nsid));
    }
    board_.update([&](Directory& directory) {
      directory.views[nsid - 1] = {};
      directory.owners[nsid - 1] = nullptr;
    });
    free_numbers_.push_back(nsid);
  }
  wake();
  for (std::uint32_t tries = 0;; ++tries) {
    // Nobody looks at the old directory: then nobody begins an operation, either.
    if (board_.try_reclaim() && removed->operations() == 0) return true;
    if (deadline.passed()) return false;
    if (!threaded_) service();
    if (tries > 100) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      pause(tries);
    }
  }
}

std::shared_ptr<Namespace> SoftwareController::find_namespace(std::uint32_t nsid) const {
  return board_.read([nsid](const Directory& directory) -> std::shared_ptr<Namespace> {
    if (nsid == 0 || nsid > directory.owners.size()) return nullptr;
    return directory.owners[nsid - 1];
  });
}

std::optional<NamespaceShape> SoftwareController::shape_of(std::uint32_t nsid) const {
  const std::shared_ptr<Namespace> found = find_namespace(nsid);
  if (found == nullptr) return std::nullopt;
  const NamespaceView& view = found->view();
  return NamespaceShape{nsid, 1u << view.block_shift, view.blocks, view.data_bytes, view.writable,
                        true, found->path()};
}

void SoftwareController::set_faults(std::vector<FaultRule> rules, std::uint64_t seed) {
  std::shared_ptr<FaultPlan> plan;
  if (!rules.empty()) plan = std::make_shared<FaultPlan>(std::move(rules), seed);
  board_.update([&](Directory& directory) { directory.faults = std::move(plan); });
}

void SoftwareController::set_profile(const std::optional<DriveProfile>& profile, std::uint32_t drives) {
  std::shared_ptr<DrivePacer> pacer;
  if (profile) pacer = std::make_shared<DrivePacer>(*profile, drives);
  board_.update([&](Directory& directory) { directory.pacer = std::move(pacer); });
}

void SoftwareController::start() {
  const std::lock_guard lock(mutex_);
  if (started_ || !threaded_) return;
  stopping_.store(false, std::memory_order_relaxed);  // the threads start after it
  process_ = getpid();
  const SignalsBlocked blocked;
  std::size_t begun = 0;
  try {
    for (; begun < serves_.size(); ++begun) {
      Service& service = *serves_[begun];
      service.ended = false;
      service.thread = std::thread([this, &service] { run(service); });
    }
  } catch (...) {
    serves_[begun]->ended = true;
    stopping_.store(true, std::memory_order_relaxed);
    started_ = begun > 0;
    throw;
  }
  started_ = true;
}

bool SoftwareController::stop(Deadline deadline) {
  if (!threaded_) {
    bool done = true;
    for (const auto& service : serves_) {
      // Acquire: what the last one who drove it did.
      while (service->taken.exchange(true, std::memory_order_acquire)) {
        if (deadline.passed()) return false;
        pause(100);
      }
      done &= service->worker.abort(deadline);
      service->taken.store(false, std::memory_order_release);  // what we did
    }
    return done;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!started_) return true;
    stopping_.store(true, std::memory_order_relaxed);
    signals_->rouse.notify_all();
  }
  return join(deadline);
}

bool SoftwareController::join(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto all_ended = [this] {
    return std::ranges::all_of(serves_, [](const auto& service) { return service->ended; });
  };
  const std::uint64_t now = now_ns();
  const std::uint64_t left = deadline.at_ns > now ? deadline.at_ns - now : 0;
  if (!signals_->ended.wait_for(lock, std::chrono::nanoseconds(left), all_ended)) return false;
  for (const auto& service : serves_) {
    if (service->thread.joinable()) service->thread.join();
  }
  started_ = false;
  return true;
}

void SoftwareController::recreate_queues() {
  const std::lock_guard lock(mutex_);
  if (started_) throw std::logic_error("queue pairs are recreated while the controller is stopped");
  for (const auto& service : serves_) service->worker.forget_queues();
  memory_.reset_rings();
}

bool SoftwareController::running() const {
  const std::lock_guard lock(mutex_);
  return started_ || !threaded_;
}

void SoftwareController::wake() {
  const std::lock_guard lock(mutex_);
  ++epoch_;
  signals_->rouse.notify_all();
}

void SoftwareController::change_activity(int by) {
  const std::lock_guard lock(mutex_);
  activity_ += by;
  if (by > 0) signals_->rouse.notify_all();
}

void SoftwareController::run(Service& service) {
  std::uint32_t idle = 0;
  std::uint64_t seen = 0;
  // Relaxed: what the stopper did before does not matter.
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (service.worker.look()) {
      idle = 0;
      continue;
    }
    ++idle;
    if (idle < kSpins) {
      pause(0);
    } else if (idle < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      std::unique_lock lock(mutex_);
      if (epoch_ != seen) {
        seen = epoch_;
        idle = 0;
      }
      lock.unlock();
      if (idle > 0 && rest(service, idle - kSpins - kYields, seen)) idle = 0;
    }
  }
  // Executors that hang in the kernel are waited for by the destructor, which has all the time there is.
  while (!service.worker.abort(Deadline::in(1'000'000'000))) {
  }
  const std::lock_guard lock(mutex_);
  service.cpu_ns.fetch_add(cpu_time_ns(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
  service.path = service.worker.executor_path();
  service.ended = true;
  signals_->ended.notify_all();
}

// Sleeps; true if somebody wants the thread to look closely again.
bool SoftwareController::rest(Service& service, std::uint32_t rests, std::uint64_t seen) {
  std::uint64_t ns = std::min(kShortestSleepNs << std::min(rests, 8u), kLongestSleepNs);
  if (service.worker.executing()) return service.worker.await_executor(std::min(ns, 2 * kShortestSleepNs));
  const std::uint64_t due = service.worker.next_due_ns();
  const std::uint64_t now = due == ~0ull ? 0 : now_ns();
  std::unique_lock lock(mutex_);
  const auto roused = [&] { return epoch_ != seen || stopping_.load(std::memory_order_relaxed); };
  if (due == ~0ull && activity_ == 0) {
    signals_->rouse.wait(lock, [&] { return activity_ > 0 || roused(); });
    return true;
  }
  if (due <= now) return false;
  ns = std::min(ns, due - now);
  signals_->rouse.wait_for(lock, std::chrono::nanoseconds(ns), roused);
  return roused();
}

bool SoftwareController::drive(Service& service, std::uint64_t wait_ns) {
  // Acquire and release: one after another they drive the worker.
  if (service.taken.exchange(true, std::memory_order_acquire)) return false;
  bool worked = service.worker.look();
  if (!worked && wait_ns > 0) worked = service.worker.await_executor(wait_ns);
  service.taken.store(false, std::memory_order_release);
  return worked;
}

bool SoftwareController::service(std::uint32_t pair, std::uint64_t wait_ns) {
  return !threaded_ && drive(*serves_[pair], wait_ns);
}

bool SoftwareController::service() {
  bool worked = false;
  for (std::uint32_t pair = 0; !threaded_ && pair < serves_.size(); ++pair) {
    worked |= drive(*serves_[pair], 0);
  }
  return worked;
}

ControllerStatistics SoftwareController::statistics() const {
  ControllerStatistics statistics;
  const std::lock_guard lock(mutex_);
  for (const auto& service : serves_) {
    statistics.counts += service->worker.counts();
    statistics.failed_queues += service->worker.failed_queues();
    if (!service->path.empty()) statistics.direct_paths.push_back(service->path);
    if (!threaded_) continue;
    std::uint64_t ns = service->cpu_ns.load(std::memory_order_relaxed);
    clockid_t clock;
    // `ended` is set by the thread as its last deed, under the lock that we hold: it is there.
    if (!service->ended &&
        pthread_getcpuclockid(const_cast<std::thread&>(service->thread).native_handle(), &clock) == 0) {
      ns += cpu_time_ns(clock);
    }
    statistics.thread_seconds.push_back(static_cast<double>(ns) * 1e-9);
  }
  const auto plan = board_.read([](const Directory& directory) { return directory.faults; });
  if (plan != nullptr) statistics.fired = plan->fired();
  return statistics;
}

}  // namespace bamquery
