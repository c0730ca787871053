// Fiber: a stack of its own that another one can be switched to; what a CUDA thread becomes here.
#pragma once

#include <cstddef>

namespace ring::simt {

/// A flow of control: either a fiber with its own stack, or the thread that runs them. Switching
/// between fibers of one thread costs about as much as a call; on processors without a switch of
/// our own it goes through ucontext. The sanitizers are told about every switch.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Prepares the fiber to call entry(argument) when it is next switched to. The entry must not
  /// return: it ends by switching away for good. May be called again whenever the fiber is not
  /// running; what was on its stack is dropped without running destructors.
  void start(Entry entry, void* argument);
  /// Leaves the running flow of control, which `from` remembers, for `to`.
  static void switch_to(Fiber& from, Fiber& to);

 private:
  static void enter(Fiber* self);

  void* stack_pointer_ = nullptr;  ///< Where it was left; or its ucontext.
  std::byte* stack_ = nullptr;     ///< Null for the thread's own stack.
  const void* bottom_ = nullptr;   ///< Of the stack in use, for the sanitizer.
  std::size_t bytes_ = 0;
  void* sanitizer_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
};

}  // namespace ring::simt
