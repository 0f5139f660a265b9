#include "common/transport/shared_pages.h"

#include <sys/mman.h>

#include <utility>

#include "common/base/status_macros.h"
#include "common/layout/units.h"
#include "common/transport/sealed_memory.h"

namespace kvd {

absl::StatusOr<std::shared_ptr<SharedPages>> SharedPages::Create(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("a buffer of 0 bytes");
  if (bytes > SIZE_MAX - kPageBytes)
    return absl::ResourceExhaustedError("no memory for so large a buffer");
  const size_t length = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  KVD_ASSIGN_OR_RETURN(UniqueFd fd, MakeSealedMemory({.name = "kvd-buffer", .bytes = length}));
  MappedMemory::Options options;
  options.fd = fd.get();
  options.length_bytes = length;
  options.protection = PROT_READ | PROT_WRITE;
  KVD_ASSIGN_OR_RETURN(MappedMemory memory, MappedMemory::Map(options));
  return std::shared_ptr<SharedPages>(new SharedPages(std::move(fd), std::move(memory)));
}

}  // namespace kvd
