// Memory that reads land in: plain memory where the region is mapped, memory of the channel where READs are posted.
// Grows as it is needed, and keeps what is not large; its content does not survive growth.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/layout/units.h"
#include "common/transport/client_channel.h"

namespace kvd {

class ReadBuffer {
 public:
  // `channel` outlives the buffer. The first allocation has at least `floor_bytes`.
  ReadBuffer(ClientChannel& channel, uint64_t floor_bytes) : channel_(channel), floor_bytes_(floor_bytes) {}
  ~ReadBuffer() { Release(); }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  // Null if there are less than `bytes` so far.
  std::byte* IfAtLeast(uint64_t bytes) const { return bytes <= size_ ? data_ : nullptr; }

  // At least `bytes` bytes, cache-line aligned. ResourceExhausted as ClientChannel::Allocate, which leaves the buffer empty.
  absl::StatusOr<std::byte*> AtLeast(uint64_t bytes) {
    if (bytes <= size_) [[likely]] {
      return data_;
    }
    return Grow(bytes);
  }

  // Its bytes are not needed any more.
  void GiveBackIfLarge() {
    if (size_ > kKeptBytesMax) [[unlikely]] Release();
  }

 private:
  // What a client keeps for the next item. One read of a long value must not cost it that much memory for ever.
  static constexpr uint64_t kKeptBytesMax = uint64_t{16} << 20;

  absl::StatusOr<std::byte*> Grow(uint64_t bytes) {
    Release();
    // In steps, so that items that grow do not need new memory each; of more than that nothing is kept, so nothing is spared.
    const uint64_t wanted = bytes > kKeptBytesMax / 2 ? (bytes + kPageBytes - 1) / kPageBytes * kPageBytes
                                                      : std::max(floor_bytes_, std::bit_ceil(bytes));
    if (channel_.window().empty()) {
      KVD_ASSIGN_OR_RETURN(transfer_, channel_.Allocate(wanted));
      data_ = transfer_.bytes.data();
    } else {
      plain_ = std::aligned_alloc(kCacheLineBytes, wanted);
      if (plain_ == nullptr) return absl::ResourceExhaustedError("no memory for a read buffer; use smaller values");
      data_ = static_cast<std::byte*>(plain_);
    }
    size_ = wanted;
    return data_;
  }

  void Release() {
    if (!transfer_.bytes.empty()) channel_.Free(transfer_);
    std::free(plain_);
    transfer_ = {};
    plain_ = nullptr;
    data_ = nullptr;
    size_ = 0;
  }

  ClientChannel& channel_;
  const uint64_t floor_bytes_;
  TransferBuffer transfer_;
  void* plain_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace kvd
