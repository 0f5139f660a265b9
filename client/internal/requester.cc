#include "client/internal/requester.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

// A staging buffer up to this size is kept for the next large value rather than given back.
constexpr size_t kKeptStagingBytesMax = size_t{8} << 20;

std::span<const std::byte> BytesOf(const RequestHeader& header) { return std::as_bytes(std::span(&header, 1)); }

}  // namespace

Requester::~Requester() {
  if (!idle_.bytes.empty()) channel_.Free(idle_);
  for (const auto& [id, buffer] : busy_) channel_.Free(buffer);
}

absl::StatusOr<TransferBuffer> Requester::Stage(std::string_view payload) {
  TransferBuffer buffer = std::exchange(idle_, {});
  if (buffer.bytes.size() < payload.size()) {
    if (!buffer.bytes.empty()) channel_.Free(buffer);
    KVD_ASSIGN_OR_RETURN(buffer, channel_.Allocate(payload.size()));
  }
  std::memcpy(buffer.bytes.data(), payload.data(), payload.size());
  return buffer;
}

void Requester::Forget(uint64_t request_id) {
  const auto busy = busy_.find(request_id);
  if (busy == busy_.end()) return;
  if (idle_.bytes.empty() && busy->second.bytes.size() <= kKeptStagingBytesMax) {
    idle_ = busy->second;
  } else {
    channel_.Free(busy->second);
  }
  busy_.erase(busy);
}

absl::StatusOr<bool> Requester::TakeReply(uint64_t id, ReplyView& reply, bool& any) {
  const std::span<const std::byte> frame = channel_.PollReply();
  any = !frame.empty();
  if (!any) return false;
  if (const FrameError error = DecodeReply(frame, reply); error != nullptr) {
    return absl::DataLossError(absl::StrCat("the server's reply broke the format: ", error));
  }
  if (!busy_.empty()) Forget(reply.header.request_id);
  return reply.header.request_id == id;
}

absl::Status Requester::SendWhenCredit(const FrameParts& frame, int64_t deadline_ns) {
  for (;;) {
    const absl::Status sent = channel_.Send(frame);
    if (!absl::IsResourceExhausted(sent)) return sent;
    ReplyView late;
    bool any = false;
    KVD_RETURN_IF_ERROR(TakeReply(0, late, any).status());
    if (any) continue;
    if (const absl::Status waited = channel_.Wait(deadline_ns); !waited.ok()) {
      return absl::IsDeadlineExceeded(waited)
                 ? absl::DeadlineExceededError("not sent: all credits are held by requests that are unanswered")
                 : waited;
    }
  }
}

absl::StatusOr<ReplyView> Requester::Call(RequestHeader header, std::string_view key, std::string_view payload,
                                          int64_t deadline_ns) {
  header.request_id = ++last_id_;
  header.key_len = static_cast<uint16_t>(key.size());
  header.value_len = payload.size();
  FrameParts frame{BytesOf(header), key, payload};
  if (frame.bytes() > channel_.welcome().frame_bytes) {
    KVD_ASSIGN_OR_RETURN(const TransferBuffer staged, Stage(payload));
    header.flags |= kRequestPull;
    header.pull_address = staged.address;
    header.pull_key = staged.key;
    frame.payload = {};
    busy_.emplace(header.request_id, staged);
  }
  if (absl::Status sent = SendWhenCredit(frame, deadline_ns); !sent.ok()) {
    Forget(header.request_id);
    return sent;
  }
  ++requests_;
  absl::Status waited;
  for (;;) {
    ReplyView reply;
    bool any = false;
    KVD_ASSIGN_OR_RETURN(const bool mine, TakeReply(header.request_id, reply, any));
    if (mine) {
      if (reply.header.opcode == header.opcode) return reply;
      return absl::DataLossError("the server's reply broke the format: it answers another operation");
    }
    if (any) continue;
    // Judged only now: an answer may have come together with the end of the session.
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError("sent, and not answered in time; a write may still take effect");
    }
    if (!waited.ok()) {
      return absl::UnknownError(absl::StrCat("sent, and the session ended before the answer: ", waited.message()));
    }
    waited = channel_.Wait(deadline_ns);
  }
}

void Requester::Notify(RequestHeader header, std::string_view key) {
  header.request_id = ++last_id_;
  header.key_len = static_cast<uint16_t>(key.size());
  if (channel_.Send({BytesOf(header), key, {}}).ok()) ++requests_;
}

}  // namespace kvd
