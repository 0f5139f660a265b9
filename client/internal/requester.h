// Requests over a channel: sends one, waits for its own reply, and keeps what late replies still need.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/request_codec.h"
#include "common/transport/client_channel.h"

namespace kvd {

class Requester {
 public:
  // `channel` outlives the requester.
  explicit Requester(ClientChannel& channel) : channel_(channel) {}
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Sends `header` (its request id is set here) with key and payload and waits for the reply, which is valid until the
  // next call. A payload that does not fit the frame goes into a transfer buffer, from which the server pulls it; the
  // buffer lives until the reply has come, however late.
  //   DeadlineExceeded: sent, not answered in time, or never sent for lack of credits (the message says which)
  //   Unknown: sent, and the session ended before the answer
  //   others: as ClientChannel::Send and Allocate; nothing was sent.
  absl::StatusOr<ReplyView> Call(RequestHeader header, std::string_view key, std::string_view payload,
                                 int64_t deadline_ns);

  // Sends without waiting; its reply is dropped when it comes. For kRelease. Does nothing if no credit is free.
  void Notify(RequestHeader header, std::string_view key);

  uint64_t requests() const { return requests_; }

 private:
  absl::Status SendWhenCredit(const FrameParts& frame, int64_t deadline_ns);
  absl::StatusOr<TransferBuffer> Stage(std::string_view payload);
  // Takes one reply if one is there; true if it is the one with `id`.
  absl::StatusOr<bool> TakeReply(uint64_t id, ReplyView& reply, bool& any);
  void Forget(uint64_t request_id);

  ClientChannel& channel_;
  uint64_t last_id_ = 0;
  uint64_t requests_ = 0;
  TransferBuffer idle_;                                // staging buffer kept for the next large PUT
  std::unordered_map<uint64_t, TransferBuffer> busy_;  // by request id: the server may still pull from them
};

}  // namespace kvd
