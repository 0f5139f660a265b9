#include "common/transport/verbs/client_buffers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace kvd::verbs {

absl::Status ClientBuffers::CheckRoom(size_t bytes) const {
  if (buffers_.size() == kBuffersMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a client may have ", kBuffersMax, " buffers and has them"));
  }
  if (bytes > kBytesMax - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a client's buffers may have ", FormatBytes(kBytesMax), " in all; it has ",
                     FormatBytes(bytes_), " and asks for ", FormatBytes(bytes), " more"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TransferBuffer> ClientBuffers::Allocate(size_t bytes) {
  KVD_RETURN_IF_ERROR(CheckRoom(bytes));  // before the memory is there
  KVD_ASSIGN_OR_RETURN(std::shared_ptr<SharedPages> pages, SharedPages::Create(bytes));
  KVD_ASSIGN_OR_RETURN(TransferBuffer buffer, Register(std::move(pages)));
  buffer.bytes = buffer.bytes.first(bytes);
  return buffer;
}

absl::StatusOr<TransferBuffer> ClientBuffers::Register(std::shared_ptr<SharedPages> pages) {
  KVD_RETURN_IF_ERROR(CheckRoom(pages->length_bytes()));
  const std::span<std::byte> memory(pages->base(), pages->length_bytes());
  // Never writable for the peer: it pulls, it does not push.
  KVD_ASSIGN_OR_RETURN(
      MemoryRegion region,
      MemoryRegion::Register(pd_, memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  TransferBuffer buffer;
  buffer.bytes = memory;
  buffer.address = reinterpret_cast<uint64_t>(memory.data());
  buffer.key = region.rkey();
  bytes_ += memory.size();
  buffers_.push_back(std::make_unique<Buffer>(Buffer{std::move(pages), std::move(region)}));
  return buffer;
}

void ClientBuffers::Free(const TransferBuffer& buffer) {
  const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const auto& one) {
    return one->pages->base() == buffer.bytes.data();
  });
  KVD_CHECK(at != buffers_.end());
  bytes_ -= (*at)->pages->length_bytes();
  buffers_.erase(at);
}

const MemoryRegion* ClientBuffers::Find(const std::byte* at, uint64_t bytes) {
  if (last_found_ < buffers_.size() && buffers_[last_found_]->region.Contains(at, bytes)) {
    return &buffers_[last_found_]->region;
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i]->region.Contains(at, bytes)) continue;
    last_found_ = i;
    return &buffers_[i]->region;
  }
  return nullptr;
}

}  // namespace kvd::verbs
