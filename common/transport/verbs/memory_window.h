// A type 2B memory window: a key for remote reads of a memory region that is good on one queue pair
// only, and that one work request takes back.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

// Whether the device has them.
bool HasMemoryWindows(const RdmaContext& context);

class MemoryWindow {
 public:
  // ResourceExhausted: the device has no more.
  static absl::StatusOr<std::unique_ptr<MemoryWindow>> Create(std::shared_ptr<ProtectionDomain> pd);

  // Goes before the memory region that it is bound to, and before its queue pair.
  ~MemoryWindow();
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  ibv_mw* get() const { return window_; }
  // The key that peers read by, once SendQueue::AddBind has been executed with it.
  uint32_t rkey() const { return rkey_; }

 private:
  MemoryWindow(std::shared_ptr<ProtectionDomain> pd, ibv_mw* window);

  std::shared_ptr<ProtectionDomain> pd_;
  ibv_mw* window_;
  const uint32_t rkey_;
};

}  // namespace kvd::verbs
