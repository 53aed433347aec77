#include "driver/native/files/bus_guard.hpp"

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace bamquery {
namespace {

struct Guard {
  sigjmp_buf jump;
  std::uintptr_t begin;
  std::uintptr_t end;
};

// Only the faulting thread's own guard counts; the handler runs in that thread. Volatile, and fenced below,
// since the compiler cannot see that the handler reads it while the guarded work runs.
thread_local Guard* volatile active_guard = nullptr;
thread_local bool passing_on = false;

struct sigaction previous_action;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  Guard* const guard = active_guard;
  if (guard != nullptr && address >= guard->begin && address < guard->end) siglongjmp(guard->jump, 1);
  const bool callable = (previous_action.sa_flags & SA_SIGINFO) != 0 ||
                        (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN);
  if (!callable || passing_on) {
    // Nobody else wants it, or the one before us raised it again: let the fault end the process as usual.
    struct sigaction fallback = {};
    fallback.sa_handler = SIG_DFL;
    sigaction(signal, &fallback, nullptr);
    return;
  }
  passing_on = true;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else {
    previous_action.sa_handler(signal);
  }
  passing_on = false;
}

// Asked before every read, since other libraries may install handlers of their own at any time.
void ensure_handler() {
  struct sigaction current = {};
  sigaction(SIGBUS, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bus_error) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  sigaction(SIGBUS, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bus_error) return;
  previous_action = current;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  // NODEFER: siglongjmp leaves the handler without restoring the signal mask, which would cost a system call
  // a read to save.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

bool run_guarded(std::span<const std::byte> mapped, void (*work)(void*), void* context) {
  ensure_handler();
  Guard guard;
  guard.begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  guard.end = guard.begin + mapped.size();
  if (sigsetjmp(guard.jump, 0) != 0) {
    active_guard = nullptr;
    return false;
  }
  active_guard = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the work must not start before
  work(context);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // nor end after
  active_guard = nullptr;
  return true;
}

}  // namespace bamquery
