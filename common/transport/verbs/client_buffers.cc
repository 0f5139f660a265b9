#include "common/transport/verbs/client_buffers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace kvd::verbs {

absl::StatusOr<TransferBuffer> ClientBuffers::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("a buffer of no bytes");
  if (buffers_.size() == kBuffersMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a client may have ", kBuffersMax, " buffers and has them"));
  }
  if (bytes > kBytesMax - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a client's buffers may have ", FormatBytes(kBytesMax), " in all; it has ",
                     FormatBytes(bytes_), " and asks for ", FormatBytes(bytes), " more"));
  }
  // Never writable for the peer: it pulls, it does not push.
  KVD_ASSIGN_OR_RETURN(
      RegisteredPages pages,
      RegisteredPages::Create(pd_, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  TransferBuffer buffer;
  buffer.bytes = {pages.base(), bytes};
  buffer.address = reinterpret_cast<uint64_t>(pages.base());
  buffer.key = pages.region().rkey();
  bytes_ += pages.length_bytes();
  buffers_.push_back(std::make_unique<RegisteredPages>(std::move(pages)));
  return buffer;
}

void ClientBuffers::Free(const TransferBuffer& buffer) {
  const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const auto& pages) {
    return pages->base() == buffer.bytes.data();
  });
  KVD_CHECK(at != buffers_.end());
  bytes_ -= (*at)->length_bytes();
  buffers_.erase(at);
}

const MemoryRegion* ClientBuffers::Find(const std::byte* at, uint64_t bytes) {
  if (last_found_ < buffers_.size() && buffers_[last_found_]->region().Contains(at, bytes)) {
    return &buffers_[last_found_]->region();
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i]->region().Contains(at, bytes)) continue;
    last_found_ = i;
    return &buffers_[i]->region();
  }
  return nullptr;
}

}  // namespace kvd::verbs
