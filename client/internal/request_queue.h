// Requests of a client object over all its sessions: sent when there is a credit, matched with their replies, and sent
// again in the next session if the last one ended before they were answered.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/buffer_memory.h"
#include "common/protocol/request_codec.h"
#include "common/transport/client_channel.h"

namespace kvd {

// One request. Belongs to whoever submits it, who keeps it, its key and its payload until it is done or withdrawn.
struct Request {
  // Before Submit: opcode, flags and options. The queue sets id, lengths and pull fields.
  RequestHeader header{};
  std::string_view key;
  std::string_view payload;
  // The buffer that the payload begins, so that it need not be copied for the server to pull it; or null.
  std::shared_ptr<BufferMemory> buffer;
  int64_t deadline_ns = 0;  // monotonic; not sent any more from then on. 0: sent whenever it can be
  void* owner = nullptr;  // not null: the request is handed back by TakeFinished

  // Once done. Ok: answered, by `reply` and `reply_payload`, whatever they say. Unknown: a write that was sent, and whose
  // answer was lost. Others: it was not executed (DeadlineExceeded: nor sent, its deadline had passed).
  bool done = true;
  absl::Status status;
  ReplyHeader reply{};
  std::string reply_payload;
};

// One thread at a time; never blocks.
class RequestQueue {
 public:
  RequestQueue() = default;
  ~RequestQueue();
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // A session begins. What was sent and not answered in the last one goes first: under its old id, as a repeat, if
  // `replies_kept` (the server still knows which of them it executed); otherwise writes end as Unknown and the rest is
  // asked anew. `channel` outlives the session.
  void Attach(ClientChannel& channel, std::shared_ptr<Registrar> registrar, bool replies_kept);

  // The session has ended, and its channel goes after this call.
  void Detach();

  // To be sent by the next Pump, in the order of submission. If its payload fits no frame, that Pump also copies it to where
  // the server can pull it from.
  void Submit(Request& request);

  // Sends what waits, as far as there are credits, and takes the replies that are there. An error is the channel's, or
  // DataLoss: the server broke the format; the session is of no use any more.
  absl::Status Pump();

  // How far a request that is given up had come.
  enum class Progress : uint8_t {
    kUnsent,      // never sent: it has no effect
    kSent,        // it may have taken effect, or take effect yet
    kUnanswered,  // sent in a session that has ended, and not yet again
  };
  // The caller will not wait any longer. What the server may still pull from is kept until it has answered.
  Progress Withdraw(Request& request);

  // Ends everything that waits for a session: writes that were sent as Unknown, the rest with `why`.
  void FailAll(const absl::Status& why);

  // The next request that has an owner and is done, or null.
  Request* TakeFinished();

  // Sends at once, without an answer to wait for. False: it was not sent, since no credit is free
  // or others wait for one.
  bool Notify(RequestHeader header, std::string_view key, std::string_view payload = {});

  bool anything_finished() const { return !finished_.empty(); }
  bool idle() const { return waiting_.empty() && sent_.empty(); }
  // That a request could have now.
  size_t credits_free() const {
    return channel_ == nullptr || !waiting_.empty() ? 0
                                                    : channel_->welcome().credits - sent_.size();
  }
  uint64_t requests() const { return requests_; }  // sent so far, repeats included
  uint64_t repeats() const { return repeats_; }

 private:
  struct Waiting {
    Request* request = nullptr;
    uint64_t id = 0;  // not zero: a repeat, under this id
  };
  struct Sent {
    uint64_t id = 0;
    Request* request = nullptr;  // null: withdrawn, or a notification
    TransferBuffer staged;
    std::shared_ptr<BufferMemory> buffer;  // that the server may pull from
  };

  absl::Status Send();
  absl::Status SendOne(const Waiting& waiting, int64_t& now_ns);
  bool TooLate(const Waiting& waiting, int64_t& now_ns);
  absl::StatusOr<TransferBuffer> Stage(std::string_view payload);
  void Unstage(const TransferBuffer& staged);
  absl::Status TakeReplies();
  absl::Status TakeReply(const ReplyView& reply);
  void Finish(Request& request, absl::Status status);

  ClientChannel* channel_ = nullptr;  // null: no session
  std::shared_ptr<Registrar> registrar_;
  std::deque<Waiting> waiting_;
  std::vector<Sent> sent_;  // as many as credits: few enough to look through
  std::deque<Request*> finished_;
  uint64_t last_id_ = 0;
  uint64_t requests_ = 0;
  uint64_t repeats_ = 0;
  TransferBuffer idle_;  // staging buffer kept for the next large payload
};

}  // namespace kvd
