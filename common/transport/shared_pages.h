// Whole pages that a client shares with a transport: READs land in them, the server pulls from
// them.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"

namespace kvd {

// A memfd of fixed size and its mapping, so that a device can register the memory and a peer on the
// same host can map it. It outlives the sessions in which it is registered; never copied, never
// moved.
class SharedPages {
 public:
  // At least `bytes` (not 0) bytes, zeroed. ResourceExhausted: no descriptor, no memory.
  static absl::StatusOr<std::shared_ptr<SharedPages>> Create(size_t bytes);

  std::byte* base() const { return memory_.base(); }
  size_t length_bytes() const { return memory_.length_bytes(); }
  int fd() const { return fd_.get(); }

 private:
  SharedPages(UniqueFd fd, MappedMemory memory) : fd_(std::move(fd)), memory_(std::move(memory)) {}

  UniqueFd fd_;
  MappedMemory memory_;
};

}  // namespace kvd
