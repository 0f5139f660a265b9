// The buffers that one client has for READs and pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/client_channel.h"
#include "common/transport/shared_pages.h"
#include "common/transport/verbs/memory_region.h"

namespace kvd::verbs {

class ClientBuffers {
 public:
  static constexpr size_t kBuffersMax = 64;
  static constexpr uint64_t kBytesMax = uint64_t{16} << 30;

  explicit ClientBuffers(std::shared_ptr<ProtectionDomain> pd) : pd_(std::move(pd)) {}

  // ResourceExhausted names the limit and the need.
  absl::StatusOr<TransferBuffer> Allocate(size_t bytes);
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages);
  void Free(const TransferBuffer& buffer);

  // The key under which the device may write there; null: no buffer holds all of it. Valid until
  // the buffer is freed.
  const MemoryRegion* Find(const std::byte* at, uint64_t bytes);

 private:
  struct Buffer {
    std::shared_ptr<SharedPages> pages;
    MemoryRegion region;  // goes before its memory
  };

  absl::Status CheckRoom(size_t bytes) const;

  std::shared_ptr<ProtectionDomain> pd_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  size_t last_found_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace kvd::verbs
