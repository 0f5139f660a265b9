#include "common/transport/verbs/verbs_client_channel.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "common/layout/superblock.h"
#include "common/protocol/handshake.h"
#include "common/base/cpu_relax.h"
#include "common/transport/verbs/async_events.h"
#include "common/transport/verbs/client_buffers.h"
#include "common/transport/verbs/client_path.h"
#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/read_window.h"
#include "common/transport/verbs/send_queue.h"
#include "common/transport/verbs/wc_status.h"
#include "common/transport/verbs/wire.h"

namespace kvd {
namespace verbs {
namespace {

constexpr size_t kReadsMax = 64;
constexpr int64_t kSpinNs = 60'000;            // about what a wake-up from sleep costs
constexpr int64_t kKeepAliveNs = 200'000'000;  // of silence in a wait
constexpr int64_t kEventsNs = 5'000'000;  // between two looks at rdma_cm by one who does not wait
constexpr uint64_t kProbeBytes[] = {64, 4096, 65536};
constexpr uint32_t kSignalEvery = 4;

// What a send request was, in its cookie; a send of a message has its slot there.
constexpr uint64_t kReadCookie = ~uint64_t{0};
constexpr uint64_t kKeepAliveCookie = kReadCookie - 1;
constexpr uint64_t kProbeCookie = kReadCookie - 2;

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

// On one CPU nobody else can work while the client spins.
int64_t SpinNs() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  return known && CPU_COUNT(&cpus) == 1 ? 0 : kSpinNs;
}

class Channel final : public ClientChannel {
 public:
  explicit Channel(ClientPath path)
      : path_(std::move(path)),
        async_(path_.pd->context()),
        buffers_(path_.pd),
        sends_(ClientSendsMax(path_.credits) + path_.limits.depth.initiator + 2, kSignalEvery),
        reads_(path_.depth.initiator, path_.limits.read_piece_bytes, kReadsMax),
        spin_ns_(SpinNs()) {}

  // The device touches no buffer any more before the first of them goes.
  ~Channel() override { path_.qp->Destroy(); }

  absl::Status Open(const Hello& hello, int64_t deadline_ns);

  absl::Status status() override;

  absl::StatusOr<TransferBuffer> Allocate(size_t bytes) override {
    KVD_RETURN_IF_ERROR(broken_);
    return buffers_.Allocate(bytes);
  }
  void Free(const TransferBuffer& buffer) override { buffers_.Free(buffer); }

  size_t reads_max() const override { return kReadsMax; }
  absl::Status PostReads(std::span<const ReadOp> ops) override;
  size_t PollReads(std::span<ReadCompletion> completions) override;

  absl::Status Send(const FrameParts& frame) override;
  std::span<const std::byte> PollReply() override;
  absl::Status Wait(int64_t deadline_ns) override;

 private:
  struct Reply {
    uint32_t slot;
    std::span<const std::byte> frame;
  };

  std::byte* ReceiveAt(uint32_t slot) { return frames_.base() + size_t{slot} * message_bytes_; }
  std::byte* SendAt(uint32_t slot) { return ReceiveAt(ClientReceives(path_.credits) + slot); }
  std::byte* ScratchAt() { return SendAt(ClientSendsMax(path_.credits)); }

  absl::Status SayHello(const Hello& hello);
  absl::Status AwaitWelcome(int64_t deadline_ns);
  absl::Status MakeFrames();
  absl::Status Probe(int64_t deadline_ns);
  absl::Status ProbeRead(uint64_t bytes, int64_t deadline_ns);
  absl::Status CheckRegion();

  absl::Status PostReceive(uint32_t slot);
  size_t Drain();
  void Handle(const ibv_wc& completion);
  void HandleMessage(uint32_t slot, uint32_t bytes);
  void SendDone(uint64_t cookie, bool ok);
  void PumpReads();
  void Break(absl::Status cause);
  void TakeEvents();
  void TakeSocket();

  bool SomethingToPoll() const { return !replies_.empty() || reads_.anything_to_poll(); }
  bool Spin(int64_t deadline_ns);
  void Sleep(int64_t deadline_ns);
  void KeepAlive();

  ClientPath path_;
  AsyncEvents async_;
  RegisteredPages hello_page_;  // Hello goes from, Welcome comes to it
  RegisteredPages frames_;      // receives, sends, 8 bytes of scratch
  ClientBuffers buffers_;
  SendQueue sends_;
  ReadWindow reads_;
  std::vector<uint32_t> free_sends_;
  std::deque<Reply> replies_;
  std::optional<uint32_t> lent_;  // the receive that the caller looks at
  std::vector<std::byte> welcome_bytes_;
  size_t message_bytes_ = 0;
  uint32_t outstanding_ = 0;  // requests without a reply that was taken
  uint32_t credits_ = 0;
  bool keep_alive_under_way_ = false;
  bool probe_done_ = false;
  bool admitted_ = false;
  bool path_is_dead_ = false;  // when it broke
  int64_t spin_ns_;
  int64_t events_looked_at_ns_ = 0;
  uint64_t flushed_ = 0;
  absl::Status broken_;
};

// --- Opening ---

absl::Status Channel::Open(const Hello& hello, int64_t deadline_ns) {
  KVD_RETURN_IF_ERROR(SayHello(hello));
  KVD_RETURN_IF_ERROR(AwaitWelcome(deadline_ns));
  KVD_RETURN_IF_ERROR(ParseWelcome(welcome_bytes_, welcome_));
  if (welcome_.region_address + welcome_.region_bytes < welcome_.region_address) {
    return absl::DataLossError("admitted to a region that wraps around");
  }
  welcome_.credits = credits_ = std::min(welcome_.credits, path_.credits);
  KVD_RETURN_IF_ERROR(MakeFrames());
  KVD_RETURN_IF_ERROR(path_.qp->GrantRemoteRead());  // now, since it has shown itself to be a kvd
  KVD_RETURN_IF_ERROR(Probe(deadline_ns));
  for (uint32_t slot = 0; slot < ClientReceives(path_.credits); ++slot)
    KVD_RETURN_IF_ERROR(PostReceive(slot));
  admitted_ = true;
  return broken_;
}

absl::Status Channel::SayHello(const Hello& hello) {
  constexpr size_t kWelcomeMessageBytes = 1024;
  KVD_ASSIGN_OR_RETURN(hello_page_,
                       RegisteredPages::Create(path_.pd, 4096, IBV_ACCESS_LOCAL_WRITE));
  message_bytes_ = kWelcomeMessageBytes;
  ibv_sge into{reinterpret_cast<uint64_t>(hello_page_.base() + kWelcomeMessageBytes),
               static_cast<uint32_t>(kWelcomeMessageBytes), hello_page_.region().lkey()};
  ibv_recv_wr receive{kReceiveBit, nullptr, &into, 1};
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(path_.qp->get(), &receive, &bad) != 0)
    return absl::InternalError("posting a receive failed");

  const MessagePrefix prefix{static_cast<uint8_t>(MessageKind::kHello), {}, sizeof(Hello)};
  std::memcpy(hello_page_.base(), &prefix, sizeof(prefix));
  std::memcpy(hello_page_.base() + sizeof(prefix), &hello, sizeof(hello));
  sends_.AddSend({hello_page_.base(), hello_page_.region().lkey(), sizeof(prefix) + sizeof(hello)},
                 false, kKeepAliveCookie);
  return sends_.Post(path_.qp->get());
}

absl::Status Channel::AwaitWelcome(int64_t deadline_ns) {
  while (welcome_bytes_.empty()) {
    Drain();
    if (!welcome_bytes_.empty()) break;
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("connected to ", path_.name, ", which does not answer hello"));
    }
    Sleep(deadline_ns);
  }
  return absl::OkStatus();
}

absl::Status Channel::MakeFrames() {
  message_bytes_ =
      (sizeof(MessagePrefix) + std::max<size_t>(welcome_.frame_bytes, sizeof(CloseNotice)) + 63) /
      64 * 64;
  const size_t slots = ClientReceives(path_.credits) + ClientSendsMax(path_.credits);
  const size_t bytes =
      std::max<size_t>(slots * message_bytes_ + 64, kProbeBytes[std::size(kProbeBytes) - 1]);
  KVD_ASSIGN_OR_RETURN(frames_, RegisteredPages::Create(path_.pd, bytes, IBV_ACCESS_LOCAL_WRITE));
  for (uint32_t slot = ClientSendsMax(path_.credits); slot-- > 0;) free_sends_.push_back(slot);
  return absl::OkStatus();
}

absl::Status Channel::Probe(int64_t deadline_ns) {
  uint64_t arrived_bytes = 0;
  for (const uint64_t wanted : kProbeBytes) {
    const uint64_t bytes = std::min(wanted, welcome_.region_bytes / 8 * 8);
    const absl::Status read = ProbeRead(bytes, deadline_ns);
    if (absl::IsUnavailable(read) && arrived_bytes == 0) {
      return absl::UnavailableError(
          absl::StrCat("connected to ", path_.name,
                       ", but the first READ is not answered: is UDP port 4791 open on the "
                       "way, does the path lose packets? ",
                       read.message()));
    }
    if (absl::IsUnavailable(read)) {
      return absl::UnavailableError(
          absl::StrCat("READs of ", arrived_bytes, " bytes from ", path_.name, " arrive, of ",
                       bytes, " not: the path drops packets of the active MTU, ", path_.mtu_bytes,
                       "; give every switch and interface on the way an MTU of at least ",
                       path_.mtu_bytes + 128, ". ", read.message()));
    }
    KVD_RETURN_IF_ERROR(read);
    if (arrived_bytes < sizeof(RegionIdentity) && bytes >= sizeof(RegionIdentity))
      KVD_RETURN_IF_ERROR(CheckRegion());
    arrived_bytes = bytes;
  }
  return absl::OkStatus();
}

// Unavailable: it did not arrive.
absl::Status Channel::ProbeRead(uint64_t bytes, int64_t deadline_ns) {
  probe_done_ = false;
  for (uint64_t at = 0; at < bytes; at += path_.limits.read_piece_bytes) {
    const uint64_t piece = std::min(bytes - at, path_.limits.read_piece_bytes);
    sends_.AddRead({frames_.base() + at, frames_.region().lkey(), static_cast<uint32_t>(piece)},
                   welcome_.region_address + at, welcome_.region_key, kProbeCookie);
  }
  sends_.SignalLast();
  KVD_RETURN_IF_ERROR(sends_.Post(path_.qp->get()));
  for (;;) {
    Drain();
    if (probe_done_ && broken_.ok()) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) return absl::UnavailableError("a READ took until the deadline");
    Sleep(deadline_ns);
  }
}

absl::Status Channel::CheckRegion() {
  RegionIdentity identity;
  std::memcpy(&identity, frames_.base(), sizeof(identity));
  if (identity.magic != kSuperblockMagic || identity.incarnation != welcome_.incarnation ||
      identity.region_bytes != welcome_.region_bytes) {
    return absl::DataLossError("the region is not the one that the server announced");
  }
  return absl::OkStatus();
}

// --- Completions ---

absl::Status Channel::PostReceive(uint32_t slot) {
  ibv_sge into{reinterpret_cast<uint64_t>(ReceiveAt(slot)), static_cast<uint32_t>(message_bytes_),
               frames_.region().lkey()};
  ibv_recv_wr receive{kReceiveBit | slot, nullptr, &into, 1};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(path_.qp->get(), &receive, &bad);
  return error == 0 ? absl::OkStatus()
                    : absl::InternalError(absl::StrCat("posting a receive: errno ", error));
}

// How many completions there were.
size_t Channel::Drain() {
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

void Channel::Handle(const ibv_wc& completion) {
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if (IsFlushed(completion.status)) ++flushed_;
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

void Channel::SendDone(uint64_t cookie, bool ok) {
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

void Channel::HandleMessage(uint32_t slot, uint32_t bytes) {
  const bool first = welcome_bytes_.empty();
  const std::byte* at = first ? hello_page_.base() + message_bytes_ : ReceiveAt(slot);
  MessageKind kind{};
  std::span<const std::byte> body;
  absl::Status parsed = ParseMessage({at, bytes}, kind, body);
  if (!parsed.ok())
    return Break(absl::DataLossError(absl::StrCat("the server sent ", parsed.message())));
  if (kind == MessageKind::kClose) return Break(CloseStatus(body));
  if (first) {
    if (kind != MessageKind::kWelcome || body.empty())
      return Break(absl::DataLossError("the server's first message is no welcome"));
    welcome_bytes_.assign(body.begin(), body.end());
    return;
  }
  if (kind != MessageKind::kFrame || body.empty() || body.size() > welcome_.frame_bytes ||
      replies_.size() == outstanding_) {
    return Break(
        absl::DataLossError("the server sent a message that cannot be, or a reply too many"));
  }
  replies_.push_back(Reply{slot, body});
}

void Channel::PumpReads() {
  while (reads_.can_post() && sends_.room() > 1) {
    const ReadWindow::Piece piece = reads_.Next();
    sends_.AddRead({piece.into, piece.key, piece.bytes}, welcome_.region_address + piece.offset,
                   welcome_.region_key, kReadCookie);
  }
  sends_.SignalLast();
  if (absl::Status posted = sends_.Post(path_.qp->get()); !posted.ok()) Break(std::move(posted));
}

// The first cause stays. Whatever is posted is flushed, so every READ ends and no buffer is written
// to afterwards.
void Channel::Break(absl::Status cause) {
  if (!broken_.ok()) return;
  broken_ = std::move(cause);
  path_.qp->ToError();
  // So that the server need not find out by itself. Not over a path that is dead: Soft-RoCE's own
  // queue pair for such messages fails when its link is down, and then nobody on this host connects
  // any more.
  if (path_.id.get() != nullptr && !path_is_dead_) rdma_disconnect(path_.id.get());
  path_.socket.Reset();
  reads_.Abandon();
}

void Channel::TakeEvents() {
  events_looked_at_ns_ = NowNs();
  if (path_.id.get() != nullptr) {
    while (const std::optional<CmEvent> event = path_.id.channel().Take()) {
      Drain();  // what arrived before the end counts
      if (event->type == RDMA_CM_EVENT_DISCONNECTED) {
        Break(absl::UnavailableError("the server went away"));
      } else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
        Break(absl::UnavailableError(absl::StrCat("the RDMA device was removed: ", path_.name)));
      }
    }
  } else {
    TakeSocket();
  }
  while (const std::optional<AsyncEvent> event = async_.Take()) {
    if (event->device_fatal() || event->queue_pair_fatal()) {
      Drain();
      Break(absl::UnavailableError(event->text));
    }
  }
}

// Nothing ever comes over the socket of a TCP exchange; its end is the peer's.
void Channel::TakeSocket() {
  if (!path_.socket.valid()) return;
  pollfd socket{path_.socket.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&socket, 1, 0) <= 0) return;
  Drain();
  Break(absl::UnavailableError("the server went away"));
}

// --- The interface ---

absl::Status Channel::status() {
  if (!broken_.ok()) return broken_;
  Drain();
  if (NowNs() - events_looked_at_ns_ > kEventsNs) TakeEvents();
  return broken_;
}

absl::Status Channel::PostReads(std::span<const ReadOp> ops) {
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

size_t Channel::PollReads(std::span<ReadCompletion> completions) {
  if (!reads_.anything_to_poll()) Drain();
  return reads_.Poll(completions);
}

absl::Status Channel::Send(const FrameParts& frame) {
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
  if (absl::Status posted = sends_.Post(path_.qp->get()); !posted.ok()) {
    Break(posted);
    return posted;
  }
  ++outstanding_;
  return absl::OkStatus();
}

std::span<const std::byte> Channel::PollReply() {
  if (lent_.has_value()) {
    const uint32_t slot = *std::exchange(lent_, std::nullopt);
    if (broken_.ok()) {
      if (absl::Status posted = PostReceive(slot); !posted.ok()) Break(std::move(posted));
    }
  }
  if (replies_.empty()) Drain();
  if (replies_.empty()) return {};
  const Reply reply = replies_.front();
  replies_.pop_front();
  --outstanding_;
  lent_ = reply.slot;
  return reply.frame;
}

absl::Status Channel::Wait(int64_t deadline_ns) {
  for (;;) {
    if (Spin(deadline_ns)) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    Sleep(deadline_ns);
    if (SomethingToPoll()) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) return absl::DeadlineExceededError("no answer in time");
  }
}

bool Channel::Spin(int64_t deadline_ns) {
  Drain();
  if (SomethingToPoll()) return true;
  const int64_t until = std::min(deadline_ns, NowNs() + spin_ns_);
  if (spin_ns_ == 0) return false;
  do {
    for (int i = 0; i < 32 && broken_.ok(); ++i) {
      Drain();
      if (SomethingToPoll()) return true;
      CpuRelax();
    }
  } while (broken_.ok() && NowNs() < until);
  return false;
}

// Until something arrives, the deadline, or the time to see whether the server's device still
// answers.
void Channel::Sleep(int64_t deadline_ns) {
  if (absl::Status armed = path_.cq->Arm(); !armed.ok()) return Break(std::move(armed));
  if (Drain() == 0 && broken_.ok()) {
    const int64_t now_ns = NowNs();
    const int64_t left_ns = std::clamp<int64_t>(deadline_ns - now_ns, 0, kKeepAliveNs);
    const timespec timeout{0, left_ns};
    const int ends = path_.id.get() != nullptr ? path_.id.channel().fd() : path_.socket.get();
    std::array<pollfd, 3> fds{pollfd{path_.cq->fd(), POLLIN, 0},
                              pollfd{ends, static_cast<short>(POLLIN | POLLRDHUP), 0},
                              pollfd{async_.fd(), POLLIN, 0}};
    const int ready = ppoll(fds.data(), fds.size(), &timeout, nullptr);
    if (ready > 0 && (fds[1].revents != 0 || fds[2].revents != 0)) TakeEvents();
    if (ready == 0 && left_ns == kKeepAliveNs) KeepAlive();
  }
  path_.cq->TakeEvents();
  Drain();
}

// A READ that needs nothing of the server but its device: if it is not answered, the connection
// ends with that cause. A server that is stopped, or busy, is not dead.
void Channel::KeepAlive() {
  if (!admitted_ || keep_alive_under_way_ || reads_.under_way() || sends_.room() <= 1) return;
  keep_alive_under_way_ = true;
  sends_.AddRead({ScratchAt(), frames_.region().lkey(), 8}, welcome_.region_address,
                 welcome_.region_key, kKeepAliveCookie);
  sends_.SignalLast();
  if (absl::Status posted = sends_.Post(path_.qp->get()); !posted.ok()) Break(std::move(posted));
}

}  // namespace
}  // namespace verbs

absl::StatusOr<std::unique_ptr<ClientChannel>> VerbsClientChannel::Connect(
    const VerbsTarget& target, const Hello& hello, int64_t deadline_ns) {
  absl::StatusOr<verbs::ClientPath> path = target.connect == VerbsConnectMode::kCm
                                               ? verbs::ConnectByCm(target, hello, deadline_ns)
                                               : verbs::ConnectByTcp(target, hello, deadline_ns);
  if (!path.ok()) return path.status();
  auto channel = std::make_unique<verbs::Channel>(*std::move(path));
  KVD_RETURN_IF_ERROR(channel->Open(hello, deadline_ns));
  return channel;
}

}  // namespace kvd
