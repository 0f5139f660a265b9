#include "client/internal/request_queue.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/planted_fault.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

// A staging buffer up to this size is kept for the next large payload rather than given back.
constexpr size_t kKeptStagingBytesMax = size_t{8} << 20;

absl::Status LostAnswer() {
  return absl::UnknownError(
      "sent, and the session ended before the answer: it took effect once or not at all; read "
      "before you write again");
}

}  // namespace

RequestQueue::~RequestQueue() {
  if (channel_ != nullptr) Detach();
}

void RequestQueue::Attach(ClientChannel& channel, std::shared_ptr<Registrar> registrar,
                          bool replies_kept) {
  channel_ = &channel;
  registrar_ = std::move(registrar);
  // Those that have an id stand in front, in the order in which they were sent.
  std::deque<Waiting> waiting = std::exchange(waiting_, {});
  for (Waiting& one : waiting) {
    if (one.id != 0 && IsWrite(one.request->header.opcode)) {
      if (!replies_kept) {
        Finish(*one.request, LostAnswer());
        continue;
      }
    } else {
      one.id = 0;
    }
    waiting_.push_back(one);
  }
}

void RequestQueue::Detach() {
  std::sort(sent_.begin(), sent_.end(), [](const Sent& a, const Sent& b) { return a.id > b.id; });
  for (const Sent& sent : sent_) {
    if (!sent.staged.bytes.empty()) channel_->Free(sent.staged);
    if (sent.request != nullptr) waiting_.push_front(Waiting{sent.request, sent.id});
  }
  sent_.clear();
  if (!idle_.bytes.empty()) channel_->Free(std::exchange(idle_, {}));
  channel_ = nullptr;
  registrar_ = nullptr;
}

void RequestQueue::Submit(Request& request) {
  request.done = false;
  request.status = absl::OkStatus();
  waiting_.push_back(Waiting{&request, 0});
}

absl::Status RequestQueue::Pump() {
  if (channel_ == nullptr) return absl::OkStatus();
  // Replies first, for they bring credits; where none can be there, what waits is not held up. And
  // also when sending failed: an answer may have come together with the end of the session.
  if (waiting_.empty() || !sent_.empty()) KVD_RETURN_IF_ERROR(TakeReplies());
  if (waiting_.empty()) return absl::OkStatus();
  // Until something is under way whose reply lets go what still waits: who waits for a reply when
  // all have been answered would wait in vain.
  for (;;) {
    const absl::Status sent = Send();
    KVD_RETURN_IF_ERROR(TakeReplies());
    if (!sent.ok() || waiting_.empty() || !sent_.empty()) return sent;
  }
}

absl::Status RequestQueue::Send() {
  int64_t now_ns = 0;  // not looked at yet
  while (!waiting_.empty()) {
    const Waiting next = waiting_.front();
    const absl::Status sent = SendOne(next, now_ns);
    if (sent.ok()) [[likely]] {
      waiting_.pop_front();
      continue;
    }
    if (!next.request->status.ok() && channel_->status().ok()) {  // this one cannot be sent
      waiting_.pop_front();
      Finish(*next.request, std::exchange(next.request->status, absl::OkStatus()));
      continue;
    }
    // What it waits for is a credit.
    return absl::IsResourceExhausted(sent) && channel_->status().ok() ? absl::OkStatus() : sent;
  }
  return absl::OkStatus();
}

// `now_ns`: 0, or as the clock said.
bool RequestQueue::TooLate(const Waiting& waiting, int64_t& now_ns) {
  if (waiting.id != 0) return false;  // it has been sent before
  if (now_ns == 0) now_ns = RealClock::Get().NowMonotonicNs();
  if (now_ns < waiting.request->deadline_ns) return false;
  waiting.request->status =
      absl::DeadlineExceededError("not sent, and without effect: its deadline had passed by then");
  return true;
}

absl::Status RequestQueue::SendOne(const Waiting& waiting, int64_t& now_ns) {
  Request& request = *waiting.request;
  if (request.deadline_ns != 0 && TooLate(waiting, now_ns)) [[unlikely]]
    return request.status;
  // A session has no more requests outstanding than credits, whatever else the channel could take.
  if (sent_.size() >= channel_->welcome().credits) return absl::ResourceExhaustedError("no credit");
  RequestHeader header = request.header;
  header.request_id = waiting.id != 0 ? waiting.id : last_id_ + 1;
  if (waiting.id != 0) header.flags |= kRequestRepeat;
  header.key_len = static_cast<uint16_t>(request.key.size());
  header.value_len = request.payload.size();
  FrameParts frame{std::as_bytes(std::span(&header, 1)), request.key, request.payload};
  TransferBuffer staged;
  if (frame.bytes() > channel_->welcome().frame_bytes) {
    TransferBuffer source;
    auto lies = request.buffer != nullptr ? request.buffer->RegisterWith(registrar_)
                                          : Stage(request.payload);
    if (!lies.ok()) {
      if (absl::IsResourceExhausted(lies.status())) request.status = lies.status();
      return lies.status();
    }
    source = *lies;
    if (request.buffer == nullptr) staged = source;
    header.flags |= kRequestPull;
    header.pull_address = source.address;
    header.pull_key = source.key;
    frame.payload = {};
    now_ns = 0;  // the copy, or the registration, has taken its time
    if (request.deadline_ns != 0 && TooLate(waiting, now_ns)) {
      if (!staged.bytes.empty()) Unstage(staged);
      return request.status;
    }
  }
  if (absl::Status sent = channel_->Send(frame); !sent.ok()) {
    if (!staged.bytes.empty()) Unstage(staged);
    return sent;
  }
  if (waiting.id == 0) {
    ++last_id_;
  } else {
    ++repeats_;
  }
  ++requests_;
  sent_.push_back(Sent{header.request_id, &request, staged, request.buffer});
  return absl::OkStatus();
}

absl::StatusOr<TransferBuffer> RequestQueue::Stage(std::string_view payload) {
  TransferBuffer buffer = std::exchange(idle_, {});
  if (buffer.bytes.size() < payload.size()) {
    if (!buffer.bytes.empty()) channel_->Free(buffer);
    KVD_ASSIGN_OR_RETURN(buffer, channel_->Allocate(payload.size()));
  }
  std::memcpy(buffer.bytes.data(), payload.data(), payload.size());
  return buffer;
}

void RequestQueue::Unstage(const TransferBuffer& staged) {
  if (idle_.bytes.empty() && staged.bytes.size() <= kKeptStagingBytesMax) {
    idle_ = staged;
  } else {
    channel_->Free(staged);
  }
}

absl::Status RequestQueue::TakeReplies() {
  do {
    const std::span<const std::byte> frame = channel_->PollReply();
    if (frame.empty()) return absl::OkStatus();
    ReplyView reply;
    if (const FrameError error = DecodeReply(frame, reply); error != nullptr) {
      return absl::DataLossError(absl::StrCat("the server's reply broke the format: ", error));
    }
    KVD_RETURN_IF_ERROR(TakeReply(reply));
  } while (!sent_.empty());
  return absl::OkStatus();
}

absl::Status RequestQueue::TakeReply(const ReplyView& reply) {
  const auto sent = std::find_if(sent_.begin(), sent_.end(), [&reply](const Sent& one) {
    return one.id == reply.header.request_id;
  });
  if (sent == sent_.end())
    return absl::DataLossError("the server's reply broke the format: it answers no request");
  Request* const request = sent->request;
  if (!sent->staged.bytes.empty()) Unstage(sent->staged);
  if (Planted("credits kept") && sent_.size() > 1) {
    *sent = Sent{};
  } else {
    *sent = std::move(sent_.back());
    sent_.pop_back();
  }
  if (request == nullptr) return absl::OkStatus();
  if (reply.header.opcode != request->header.opcode) {
    Finish(*request, absl::DataLossError(
                         "the server's reply broke the format: it answers another operation"));
    return request->status;
  }
  request->reply = reply.header;
  request->reply_payload.assign(reply.payload);
  Finish(*request, absl::OkStatus());
  return absl::OkStatus();
}

void RequestQueue::Finish(Request& request, absl::Status status) {
  request.done = true;
  request.status = std::move(status);
  if (request.owner != nullptr) finished_.push_back(&request);
}

RequestQueue::Progress RequestQueue::Withdraw(Request& request) {
  request.done = true;
  for (Sent& sent : sent_) {
    if (sent.request != &request) continue;
    sent.request = nullptr;
    return Progress::kSent;
  }
  const auto waiting =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [&request](const Waiting& one) { return one.request == &request; });
  if (waiting == waiting_.end()) {
    std::erase(finished_, &request);
    return Progress::kUnsent;
  }
  const bool was_sent = waiting->id != 0;
  waiting_.erase(waiting);
  return was_sent ? Progress::kUnanswered : Progress::kUnsent;
}

void RequestQueue::FailAll(const absl::Status& why) {
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    const bool lost = waiting.id != 0 && IsWrite(waiting.request->header.opcode);
    Finish(*waiting.request, lost ? LostAnswer() : why);
  }
}

Request* RequestQueue::TakeFinished() {
  if (finished_.empty()) return nullptr;
  Request* request = finished_.front();
  finished_.pop_front();
  return request;
}

bool RequestQueue::Notify(RequestHeader header, std::string_view key, std::string_view payload) {
  if (credits_free() == 0) return false;
  header.request_id = last_id_ + 1;
  header.key_len = static_cast<uint16_t>(key.size());
  header.value_len = payload.size();
  if (!channel_->Send({std::as_bytes(std::span(&header, 1)), key, payload}).ok()) return false;
  ++last_id_;
  ++requests_;
  sent_.push_back(Sent{header.request_id, nullptr, {}, nullptr});
  return true;
}

}  // namespace kvd
