#include "tests/simulation/fiber.h"

#include <utility>

#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define KVD_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVD_FIBER_ASAN 1
#endif
#endif

#if defined(KVD_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace kvd::test {
namespace {

constexpr size_t kStackBytes = size_t{512} << 10;

Fiber* current = nullptr;

void StartSwitch([[maybe_unused]] void** shadow, [[maybe_unused]] const void* stack,
                 [[maybe_unused]] size_t bytes) {
#if defined(KVD_FIBER_ASAN)
  __sanitizer_start_switch_fiber(shadow, stack, bytes);
#endif
}

void FinishSwitch([[maybe_unused]] void* shadow, [[maybe_unused]] const void** stack,
                  [[maybe_unused]] size_t* bytes) {
#if defined(KVD_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(shadow, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(new std::byte[kStackBytes]) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  makecontext(&own_, &Fiber::Main, 0);
}

Fiber::~Fiber() { KVD_CHECK(done_); }

Fiber* Fiber::Current() { return current; }

void Fiber::Resume() {
  KVD_CHECK(current == nullptr && !done_);
  current = this;
  void* shadow = nullptr;
  StartSwitch(&shadow, stack_.get(), kStackBytes);
  swapcontext(&resumer_, &own_);
  FinishSwitch(shadow, nullptr, nullptr);
  current = nullptr;
}

void Fiber::Yield() {
  Fiber* const self = current;
  KVD_CHECK(self != nullptr);
  StartSwitch(&self->shadow_, self->resumer_stack_, self->resumer_stack_bytes_);
  swapcontext(&self->own_, &self->resumer_);
  FinishSwitch(self->shadow_, &self->resumer_stack_, &self->resumer_stack_bytes_);
}

void Fiber::Main() {
  Fiber* const self = current;
  FinishSwitch(nullptr, &self->resumer_stack_, &self->resumer_stack_bytes_);
  self->body_();
  self->done_ = true;
  StartSwitch(nullptr, self->resumer_stack_, self->resumer_stack_bytes_);
  swapcontext(&self->own_, &self->resumer_);
}

}  // namespace kvd::test
