// A thread whose switches the test decides on.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

namespace bamquery {

/// Runs `body` on a stack of its own, between yields. All that it is when it does not run is in registers()
/// and in the used part of its stack.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {}

  /// Makes its stack; its body begins at the first resume().
  void start() {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = end_ - kStackBytes;
    context.uc_stack.ss_size = kStackBytes;
    makecontext(&context, run, 0);
    running_ = this;
    if (_setjmp(back_) == 0) setcontext(&context);
    running_ = nullptr;
  }

  /// Goes on to its next yield(), or to its end.
  void resume() {
    running_ = this;
    if (_setjmp(back_) == 0) _longjmp(registers_, 1);
    running_ = nullptr;
  }

  /// The fiber that calls, or nullptr.
  static Fiber* running() { return running_; }

  /// Back to who resumed the fiber that calls.
  [[gnu::noinline]] static void yield() {
    Fiber& fiber = *running_;
    fiber.stack_pointer_ = current_stack_pointer();
    if (_setjmp(fiber.registers_) == 0) _longjmp(back_, 1);
  }

  bool ended() const { return ended_; }
  void set_ended(bool ended) { ended_ = ended; }

  jmp_buf& registers() { return registers_; }
  std::size_t stack_used() const { return static_cast<std::size_t>(end_ - stack_pointer_); }
  void set_stack_used(std::size_t bytes) { stack_pointer_ = end_ - bytes; }
  std::byte* stack_pointer() const { return stack_pointer_; }

 private:
  static constexpr std::size_t kStackBytes = 64 << 10;
  // Where stacks begin differs, or their ends, which are all that most of them use, would fall into the same
  // few sets of a cache.
  static constexpr std::size_t kShift = 5 * 64;
  static constexpr std::size_t kShifts = 64;

  static std::byte* current_stack_pointer() {
    std::byte* pointer;
#if defined(__x86_64__)
    asm volatile("mov %%rsp, %0" : "=r"(pointer));
#elif defined(__aarch64__)
    asm volatile("mov %0, sp" : "=r"(pointer));
#else
#error "fiber.hpp does not know this processor's stack pointer"
#endif
    return pointer;
  }

  static void run() {
    yield();
    running_->body_();
    running_->ended_ = true;
    yield();
    std::abort();
  }

  inline static std::size_t made_ = 0;
  inline static Fiber* running_ = nullptr;
  inline static jmp_buf back_{};

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_ =
      std::make_unique_for_overwrite<std::byte[]>(kStackBytes + kShift * kShifts);
  std::byte* end_ = stack_.get() + kStackBytes + kShift * (made_++ % kShifts);
  jmp_buf registers_{};
  std::byte* stack_pointer_ = nullptr;
  bool ended_ = false;
};

}  // namespace bamquery
