#include "common/transport/shm/pull_buffers.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/session_segment.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

// A server that runs reads its sockets every millisecond, and no operation says here how long it
// would wait.
constexpr int kSocketFullWaitMs = 50;

absl::Status SendRegistration(int socket, const SegmentNotice& notice, int fd) {
  const std::span<const std::byte> packet = std::as_bytes(std::span(&notice, 1));
  const int fds[] = {fd};
  int error = SendPacket(socket, packet, fds);
  if (error == EAGAIN) {
    pollfd writable{socket, POLLOUT, 0};
    poll(&writable, 1, kSocketFullWaitMs);
    error = SendPacket(socket, packet, fds);
  }
  if (error == 0) return absl::OkStatus();
  if (error == EAGAIN) {
    return absl::DeadlineExceededError(
        "the server does not take a buffer's registration, so it may be stopped or overloaded");
  }
  if (error == EPIPE || error == ECONNRESET) return absl::UnavailableError("the server went away");
  return ErrnoStatus(error, "registering a buffer with the server");
}

}  // namespace

absl::StatusOr<TransferBuffer> PullBuffers::Allocate(size_t bytes) {
  KVD_RETURN_IF_ERROR(CheckRoom(bytes));  // before the memory is there
  KVD_ASSIGN_OR_RETURN(std::shared_ptr<SharedPages> pages, SharedPages::Create(bytes));
  KVD_ASSIGN_OR_RETURN(TransferBuffer buffer, Register(std::move(pages)));
  buffer.bytes = buffer.bytes.first(bytes);
  return buffer;
}

absl::Status PullBuffers::CheckRoom(size_t bytes) {
  SendForgets();
  if (buffers_.size() + forgets_.size() >= kPullSegmentsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a session has at most ", kPullSegmentsMax, " buffers; free one first"));
  }
  if (bytes > kPullBytesMax - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("a buffer of ", bytes, " bytes besides ",
                                                     bytes_, " in use; the limit of a session is ",
                                                     kPullBytesMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<TransferBuffer> PullBuffers::Register(std::shared_ptr<SharedPages> pages) {
  const uint64_t length = pages->length_bytes();
  KVD_RETURN_IF_ERROR(CheckRoom(length));
  const SegmentNotice notice{static_cast<uint32_t>(SegmentAction::kRegister), next_id_, length};
  KVD_RETURN_IF_ERROR(SendRegistration(socket_, notice, pages->fd()));
  TransferBuffer buffer;
  buffer.bytes = std::span(pages->base(), length);
  buffer.key = next_id_;
  buffers_.push_back(Buffer{next_id_, std::move(pages)});
  bytes_ += length;
  if (++next_id_ == 0) next_id_ = 1;
  return buffer;
}

void PullBuffers::Free(const TransferBuffer& buffer) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [&](const Buffer& entry) { return entry.id == buffer.key; });
  if (found == buffers_.end()) return;
  forgets_.push_back(Forget{found->id, found->pages->length_bytes()});
  buffers_.erase(found);
  SendForgets();
}

// Until the server has been told, the buffer counts there, so it counts here as well.
void PullBuffers::SendForgets() {
  while (!forgets_.empty()) {
    const SegmentNotice notice{static_cast<uint32_t>(SegmentAction::kForget), forgets_.back().id,
                               0};
    // Later, if the socket is full; if the server has gone, its end of the buffer has gone, too.
    if (SendPacket(socket_, std::as_bytes(std::span(&notice, 1))) == EAGAIN) return;
    bytes_ -= forgets_.back().bytes;
    forgets_.pop_back();
  }
}

}  // namespace kvd
