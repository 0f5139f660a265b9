// A buffer of the client's: memory that outlives sessions, and its registration with the present one.
//
//   | headroom: header and key of an item that is read | value | room for the item's padding |
//                                                      ^ data(), page-aligned
//
// So one READ of exactly the item puts its value where the application wants it, and it is verified there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/fork_guard.h"
#include "common/layout/item.h"
#include "common/transport/client_channel.h"
#include "common/transport/shared_pages.h"

namespace kvd {

// What buffers know a session by: gone when the session is.
struct Registrar {
  ClientChannel* channel = nullptr;
  uint32_t fork_generation = ForkGeneration();  // of the process that the session belongs to
};

class BufferMemory {
 public:
  // Room for a value of `bytes` (not 0). ResourceExhausted: no memory.
  static absl::StatusOr<std::shared_ptr<BufferMemory>> Create(size_t bytes);

  // Takes its registrations back, with sessions that still live: blocks as ClientChannel::Free. In a child of fork() the sessions
  // are the parent's, and nothing is taken from them.
  ~BufferMemory();
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  std::byte* data() const { return pages_->base() + kHeadroomBytes; }
  size_t size() const { return size_; }

  // The buffer in that session's words, registered now if it was not; `bytes` begins at data(). Errors as
  // ClientChannel::Register.
  absl::StatusOr<TransferBuffer> RegisterWith(const std::shared_ptr<Registrar>& registrar);

  // Where an item of `item_bytes`, whose value begins `before_value` bytes after its header does, must be put so that the
  // value comes to lie at data(); null if it does not fit.
  std::byte* PlaceFor(uint64_t before_value, uint64_t item_bytes) const;

  // How many bytes the last item read into it had before its key: the next one is likely to have as many.
  uint64_t bytes_before_key = kLongItemHeaderBytes;

 private:
  static constexpr size_t kHeadroomBytes = 8192;  // a header, all optional words, the longest key

  BufferMemory(std::shared_ptr<SharedPages> pages, size_t size) : pages_(std::move(pages)), size_(size) {}

  std::shared_ptr<SharedPages> pages_;
  size_t size_;

  // One for each session that it is used in, of all pages; several where several clients use it.
  struct Registration {
    std::weak_ptr<Registrar> registrar;
    TransferBuffer buffer;
  };
  std::vector<Registration> registrations_;
};

}  // namespace kvd
