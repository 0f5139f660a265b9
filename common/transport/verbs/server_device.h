// The device that a server serves by, with the region registered on it. Transport, acceptor and
// endpoints each hold it until the server ends or the device goes; the last one to let go closes
// it.
#pragma once

#include <cstdint>
#include <memory>

#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

struct ServerDevice {
  std::shared_ptr<ProtectionDomain> pd;
  MemoryRegion region;       // goes before its domain
  bool has_windows = false;  // peers read by a window of their own, and not by the region's key

  const std::shared_ptr<RdmaContext>& context() const { return pd->context(); }
};

}  // namespace kvd::verbs
