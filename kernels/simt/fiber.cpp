#include "kernels/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define RING_FIBER_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#ifndef RING_FIBER_UCONTEXT
// Pushes the registers that a call must preserve, stores the stack pointer at *from, and takes up
// those of `to`.
extern "C" void ring_simt_switch(void** from, void* to);
extern "C" void ring_simt_begin();

#if defined(__x86_64__)
asm(R"(
.text
.globl ring_simt_switch
.type ring_simt_switch, @function
ring_simt_switch:
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
.size ring_simt_switch, .-ring_simt_switch
.globl ring_simt_begin
.type ring_simt_begin, @function
ring_simt_begin:
  movq %r12, %rdi
  callq *%r13
  ud2
.size ring_simt_begin, .-ring_simt_begin
)");
#else
asm(R"(
.text
.globl ring_simt_switch
.type ring_simt_switch, %function
ring_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size ring_simt_switch, .-ring_simt_switch
.globl ring_simt_begin
.type ring_simt_begin, %function
ring_simt_begin:
  mov x0, x19
  blr x20
  brk #1
.size ring_simt_begin, .-ring_simt_begin
)");
#endif
#endif

namespace ring::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 512 << 10;
#else
constexpr std::size_t kStackBytes = 128 << 10;
#endif

std::byte* map_stack() {
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(stack);
}

}  // namespace

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (stack_ != nullptr && sanitizer_ != nullptr) __tsan_destroy_fiber(sanitizer_);
#endif
#ifdef RING_FIBER_UCONTEXT
  std::free(stack_pointer_);
#endif
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

void Fiber::enter(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  self->entry_(self->argument_);
  std::abort();
}

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  if (stack_ == nullptr) {
    stack_ = map_stack();
    bottom_ = stack_;
    bytes_ = kStackBytes;
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_create_fiber(0);
#endif
  }
#if defined(__SANITIZE_ADDRESS__)
  // The frames of what ran here before were left, not returned from.
  ASAN_UNPOISON_MEMORY_REGION(stack_, kStackBytes);
#endif
#ifdef RING_FIBER_UCONTEXT
  if (stack_pointer_ == nullptr) stack_pointer_ = std::calloc(1, sizeof(ucontext_t));
  auto* const context = static_cast<ucontext_t*>(stack_pointer_);
  getcontext(context);
  context->uc_stack.ss_sp = stack_;
  context->uc_stack.ss_size = kStackBytes;
  context->uc_link = nullptr;
  makecontext(context, reinterpret_cast<void (*)()>(&Fiber::enter), 1, this);
#else
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes - 64);
  void* const function = reinterpret_cast<void*>(&Fiber::enter);
  void* const begin = reinterpret_cast<void*>(&ring_simt_begin);
#if defined(__x86_64__)
  // r15 r14 r13 r12 rbx rbp, then where ret goes.
  top -= 7;
  top[0] = top[1] = top[4] = top[5] = nullptr;
  top[2] = function;
  top[3] = this;
  top[6] = begin;
#else
  top -= 20;
  for (int i = 0; i < 20; ++i) top[i] = nullptr;
  top[0] = this;      // x19
  top[1] = function;  // x20
  top[11] = begin;    // x30
#endif
  stack_pointer_ = top;
#endif
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
  if (from.bottom_ == nullptr) {  // The thread's own stack.
    pthread_attr_t attributes;
    void* bottom = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &from.bytes_);
    pthread_attr_destroy(&attributes);
    from.bottom_ = bottom;
  }
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, to.bottom_, to.bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  if (from.stack_ == nullptr) from.sanitizer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.sanitizer_, 0);
#endif
#ifdef RING_FIBER_UCONTEXT
  if (from.stack_pointer_ == nullptr) from.stack_pointer_ = std::calloc(1, sizeof(ucontext_t));
  swapcontext(static_cast<ucontext_t*>(from.stack_pointer_),
              static_cast<const ucontext_t*>(to.stack_pointer_));
#else
  ring_simt_switch(&from.stack_pointer_, to.stack_pointer_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

}  // namespace ring::simt
