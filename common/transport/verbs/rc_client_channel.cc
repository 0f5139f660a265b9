#include "common/transport/verbs/rc_client_channel.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_relax.h"
#include "common/transport/verbs/wc_status.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {
namespace {

constexpr uint32_t kSignalEvery = 4;
constexpr int64_t kSpinNs = 60'000;  // about what a wake-up from sleep costs

// For READs into a buffer that is freed. A device has given a dead path up before half of it.
constexpr int64_t kFreeNs = 1'000'000'000;

// On one CPU nobody else can work while the client spins.
int64_t SpinNs() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  return known && CPU_COUNT(&cpus) == 1 ? 0 : kSpinNs;
}

}  // namespace

RcClientChannel::RcClientChannel(ClientPath path)
    : path_(std::move(path)),
      async_(path_.pd->context()),
      buffers_(path_.pd),
      sends_(ClientSendsMax(path_.credits) + path_.limits.depth.initiator + 2, kSignalEvery),
      reads_(path_.depth.initiator, path_.limits.read_piece_bytes, kReadsMax),
      spin_ns_(SpinNs()) {}

absl::Status RcClientChannel::PostReceive(uint32_t slot) {
  ibv_sge into{reinterpret_cast<uint64_t>(ReceiveAt(slot)), static_cast<uint32_t>(message_bytes_),
               frames_.region().lkey()};
  ibv_recv_wr receive{kReceiveBit | slot, nullptr, &into, 1};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(path_.qp->get(), &receive, &bad);
  return error == 0 ? absl::OkStatus()
                    : absl::InternalError(absl::StrCat("posting a receive: errno ", error));
}

// How many completions there were.
size_t RcClientChannel::Drain() {
  std::array<ibv_wc, 16> completions;
  size_t count = 0;
  size_t all = 0;
  do {
    count = path_.cq->Poll(completions);
    for (size_t i = 0; i < count; ++i) Handle(completions[i]);
    all += count;
  } while (count == completions.size());
  if (all != 0 && reads_.can_post()) PumpReads();
  return all;
}

void RcClientChannel::Handle(const ibv_wc& completion) {
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if ((completion.wr_id & kReceiveBit) != 0) {
    if (ok) {
      HandleMessage(static_cast<uint32_t>(completion.wr_id), completion.byte_len);
    } else if (!IsFlushed(completion.status)) {
      Break(WcStatus(completion.status, completion.vendor_err, "receiving a reply"));
    }
    return;
  }
  // Requests before the one that failed were done: they complete in order.
  uint64_t number = completion.wr_id;
  bool known = true;
  if (!ok && number > 0)
    sends_.Retire(number - 1, [this](uint64_t cookie) { SendDone(cookie, true); });
  known = sends_.Retire(number, [&](uint64_t cookie) { SendDone(cookie, ok); });
  if (ok || !known) return;
  path_is_dead_ = completion.status == IBV_WC_RETRY_EXC_ERR ||
                  completion.status == IBV_WC_LOC_QP_OP_ERR ||
                  completion.status == IBV_WC_FATAL_ERR;
  Break(
      WcStatus(completion.status, completion.vendor_err, absl::StrCat("talking to ", path_.name)));
}

void RcClientChannel::SendDone(uint64_t cookie, bool ok) {
  if (cookie == kReadCookie) {
    reads_.Done(ok);
  } else if (cookie == kKeepAliveCookie) {
    keep_alive_under_way_ = false;
  } else if (cookie == kProbeCookie) {
    probe_done_ = ok;
  } else {
    free_sends_.push_back(static_cast<uint32_t>(cookie));
  }
}

void RcClientChannel::HandleMessage(uint32_t slot, uint32_t bytes) {
  const std::byte* at = greeting_ ? hello_page_.base() + message_bytes_ : ReceiveAt(slot);
  MessageKind kind{};
  std::span<const std::byte> body;
  absl::Status parsed = ParseMessage({at, bytes}, kind, body);
  if (!parsed.ok())
    return Break(absl::DataLossError(absl::StrCat("the server sent ", parsed.message())));
  if (kind == MessageKind::kClose) return Break(CloseStatus(body));
  if (greeting_) {
    if ((kind != MessageKind::kWelcome && kind != MessageKind::kChallenge) || body.empty())
      return Break(absl::DataLossError("the server's first message is no welcome"));
    greeting_bytes_.assign(body.begin(), body.end());
    return;
  }
  if (kind != MessageKind::kFrame || body.empty() || body.size() > welcome_.frame_bytes ||
      replies_.size() == outstanding_) {
    return Break(
        absl::DataLossError("the server sent a message that cannot be, or a reply too many"));
  }
  replies_.push_back(Reply{slot, body});
}

// A queue pair that did not take a chain whole may have some of it under way, and few requests are
// signaled: nothing would ever say that those are done. Destroyed, it touches no memory, and all is
// done.
absl::Status RcClientChannel::PostSends() {
  absl::Status posted = sends_.Post(path_.qp->get());
  if (posted.ok()) return posted;
  Break(posted);
  Drain();  // what arrived before counts
  DestroyQueues();
  return posted;
}

void RcClientChannel::DestroyQueues() {
  path_.qp->Destroy();
  sends_.RetireAll([this](uint64_t cookie) { SendDone(cookie, false); });
}

void RcClientChannel::PumpReads() {
  while (reads_.can_post() && sends_.room() > 1) {
    const ReadWindow::Piece piece = reads_.Next();
    sends_.AddRead({piece.into, piece.key, piece.bytes}, welcome_.region_address + piece.offset,
                   welcome_.region_key, kReadCookie);
  }
  sends_.SignalLast();
  PostSends().IgnoreError();  // it broke
}

// The first cause stays. Whatever is posted is flushed, so every READ ends and no buffer is written
// to afterwards.
void RcClientChannel::Break(absl::Status cause) {
  if (!broken_.ok()) return;
  broken_ = std::move(cause);
  path_.qp->ToError();
  // So that the server need not find out by itself. Not over a path that is dead: Soft-RoCE's own
  // queue pair for such messages fails when its link is down, and then nobody on this host connects
  // any more.
  if (path_.id.get() != nullptr && !path_is_dead_) path_.id.Disconnect();
  path_.socket.Reset();
  reads_.Abandon();
}

void RcClientChannel::Free(const TransferBuffer& buffer) {
  const int64_t deadline_ns = NowNs() + kFreeNs;
  while (reads_.MayStillWrite(buffer.bytes) && path_.qp->get() != nullptr) {
    Drain();
    if (NowNs() < deadline_ns) {
      OfferCore();
      continue;
    }
    Break(absl::UnavailableError(
        absl::StrCat("READs from ", path_.name, " do not end, and their buffer is given back")));
    DestroyQueues();
  }
  buffers_.Free(buffer);
}

absl::Status RcClientChannel::PostReads(std::span<const ReadOp> ops) {
  KVD_RETURN_IF_ERROR(broken_);
  if (ops.size() > reads_.room()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("at most ", kReadsMax, " READs may be outstanding, ",
                     kReadsMax - reads_.room(), " are: poll first"));
  }
  for (const ReadOp& op : ops) {
    const uint64_t offset = ToBytes(op.offset);
    if (offset > welcome_.region_bytes || op.length > welcome_.region_bytes - offset ||
        (offset | op.length) % 8 != 0) {
      return absl::InvalidArgumentError(absl::StrCat("READ of ", op.length, " bytes at ", offset,
                                                     " in a region of ", welcome_.region_bytes));
    }
    if (buffers_.Find(op.into, op.length) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("READ of ", op.length, " bytes to where no buffer is"));
    }
  }
  for (const ReadOp& op : ops) reads_.Add(op, buffers_.Find(op.into, op.length)->lkey());
  if (reads_.can_post()) PumpReads();
  return absl::OkStatus();
}

size_t RcClientChannel::PollReads(std::span<ReadCompletion> completions) {
  if (!reads_.anything_to_poll()) Drain();
  return reads_.Poll(completions);
}

absl::Status RcClientChannel::Send(const FrameParts& frame) {
  if (frame.bytes() > welcome_.frame_bytes || frame.bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", frame.bytes(), " bytes; the limit is ", welcome_.frame_bytes));
  }
  KVD_RETURN_IF_ERROR(broken_);
  if (outstanding_ == credits_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", credits_, " credits are in use: take a reply first"));
  }
  if (free_sends_.empty() || sends_.room() <= 1) {
    Drain();
    KVD_RETURN_IF_ERROR(broken_);
    if (free_sends_.empty() || sends_.room() <= 1)
      return absl::ResourceExhaustedError("the send queue is full: poll first");
  }
  const uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  const auto bytes = static_cast<uint32_t>(frame.bytes());
  std::byte* at = SendAt(slot);
  const MessagePrefix prefix{static_cast<uint8_t>(MessageKind::kFrame), {}, bytes};
  std::memcpy(at, &prefix, sizeof(prefix));
  std::byte* to = at + sizeof(prefix);
  to = std::copy(frame.header.begin(), frame.header.end(), to);
  to += frame.key.copy(reinterpret_cast<char*>(to), frame.key.size());
  frame.payload.copy(reinterpret_cast<char*>(to), frame.payload.size());
  const uint32_t message_bytes = bytes + static_cast<uint32_t>(sizeof(prefix));
  sends_.AddSend({at, frames_.region().lkey(), message_bytes},
                 message_bytes <= path_.qp->inline_bytes_max(), slot);
  KVD_RETURN_IF_ERROR(PostSends());
  ++outstanding_;
  // Before the server can need the last receive, and while the request is on its way.
  TakeBack();
  return absl::OkStatus();
}

void RcClientChannel::TakeBack() {
  if (!lent_.has_value()) return;
  const uint32_t slot = *std::exchange(lent_, std::nullopt);
  if (!broken_.ok()) return;
  if (absl::Status posted = PostReceive(slot); !posted.ok()) Break(std::move(posted));
}

std::span<const std::byte> RcClientChannel::PollReply() {
  TakeBack();
  if (replies_.empty()) Drain();
  if (replies_.empty()) return {};
  const Reply reply = replies_.front();
  replies_.pop_front();
  --outstanding_;
  lent_ = reply.slot;
  return reply.frame;
}

}  // namespace kvd::verbs
