// A function that can stop in the middle and be gone on with later, all in one thread.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace kvd::test {

class Fiber {
 public:
  // Nothing runs before the first Resume.
  explicit Fiber(std::function<void()> body);
  // Only of one that is done: what is on its stack would not be destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on with it until it yields or is done. Not from within a fiber.
  void Resume();
  bool done() const { return done_; }

  // Back to whoever resumed the fiber that this is called in.
  static void Yield();
  // Null outside of fibers.
  static Fiber* Current();

 private:
  static void Main();

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t own_{};
  ucontext_t resumer_{};
  bool done_ = false;
  // What the address sanitizer wants to know of stacks.
  void* shadow_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_bytes_ = 0;
};

}  // namespace kvd::test
