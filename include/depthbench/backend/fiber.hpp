// A fiber: a function with a stack of its own that gives control back in the middle and is resumed there.
//   Fiber f(bytes);   f.start(entry, argument);   f.resume();     // runs entry(argument) until it calls f.suspend()
// entry never returns: its last act is leave().
// On x86-64 a switch is a dozen instructions (some 30 ns); elsewhere it is ucontext's, which asks the kernel twice.
// The address sanitizer is told of each switch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace depthbench {

#if defined(__x86_64__)
// Keeps the registers that a call must keep on the old stack, its top in *from; continues from the stack `to`.
extern "C" void depthbench_switch_stack(void** from, void* to);
asm(R"(.text
.weak depthbench_switch_stack
.type depthbench_switch_stack,@function
depthbench_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size depthbench_switch_stack,.-depthbench_switch_stack
)");
#endif

class Fiber {
 public:
  explicit Fiber(std::size_t stack_bytes) : stack_(new std::byte[stack_bytes]), bytes_(stack_bytes) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void start(void (*entry)(void*), void* argument) {
    entry_ = entry;
    argument_ = argument;
#if defined(__x86_64__)
    const auto end = (reinterpret_cast<std::uintptr_t>(stack_.get()) + bytes_) & ~std::uintptr_t{63};
    auto** top = reinterpret_cast<void**>(end);
    *--top = nullptr;                                // where entry would return to; its stack is aligned as after a call
    *--top = reinterpret_cast<void*>(&Fiber::first);
    for (int i = 0; i < 6; ++i) *--top = nullptr;    // the six registers
    inner_ = top;
#else
    ::getcontext(&inner_);
    inner_.uc_stack.ss_sp = stack_.get();
    inner_.uc_stack.ss_size = bytes_;
    inner_.uc_link = nullptr;
    ::makecontext(&inner_, reinterpret_cast<void (*)()>(&Fiber::first), 0);
#endif
  }
  void resume() {
    starting() = this;
#if defined(__SANITIZE_ADDRESS__)
    void* own = nullptr;
    __sanitizer_start_switch_fiber(&own, stack_.get(), bytes_);
#endif
    to(outer_, inner_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  }
  void suspend() {
#if defined(__SANITIZE_ADDRESS__)
    void* own = nullptr;
    __sanitizer_start_switch_fiber(&own, outer_stack_, outer_bytes_);
#endif
    to(inner_, outer_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(own, &outer_stack_, &outer_bytes_);
#endif
  }
  // The last suspend(): the sanitizer gives back what it kept of this stack. (A fiber that is abandoned in the middle keeps it.)
  void leave() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(nullptr, outer_stack_, outer_bytes_);
#endif
    to(inner_, outer_);
  }

 private:
  static Fiber*& starting() {
    static thread_local Fiber* fiber = nullptr;
    return fiber;
  }
  static void first() {
    Fiber* f = starting();
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &f->outer_stack_, &f->outer_bytes_);
#endif
    f->entry_(f->argument_);
  }

#if defined(__x86_64__)
  using Context = void*;
  static void to(Context& from, Context& next) { depthbench_switch_stack(&from, next); }
#else
  using Context = ucontext_t;
  static void to(Context& from, Context& next) { ::swapcontext(&from, &next); }
#endif

  std::unique_ptr<std::byte[]> stack_;
  std::size_t bytes_;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  Context outer_{}, inner_{};
#if defined(__SANITIZE_ADDRESS__)
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
#endif
};

}  // namespace depthbench
