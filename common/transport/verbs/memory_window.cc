#include "common/transport/verbs/memory_window.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace kvd::verbs {

bool HasMemoryWindows(const RdmaContext& context) {
  return (context.attributes().device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> MemoryWindow::Create(
    std::shared_ptr<ProtectionDomain> pd) {
  ibv_mw* window = ibv_alloc_mw(pd->get(), IBV_MW_TYPE_2);
  if (window != nullptr) {
    return std::unique_ptr<MemoryWindow>(new MemoryWindow(std::move(pd), window));
  }
  const absl::Status why =
      ErrnoStatus(errno, absl::StrCat("a memory window of ", pd->context()->name()));
  return absl::ResourceExhaustedError(why.message());
}

// The low 8 bits of a window's key are for whoever binds it, so that each binding has another one.
MemoryWindow::MemoryWindow(std::shared_ptr<ProtectionDomain> pd, ibv_mw* window)
    : pd_(std::move(pd)), window_(window), rkey_(ibv_inc_rkey(window->rkey)) {}

MemoryWindow::~MemoryWindow() { ibv_dealloc_mw(window_); }

}  // namespace kvd::verbs
