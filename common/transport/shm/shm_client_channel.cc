#include "common/transport/shm/shm_client_channel.h"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/cpu_relax.h"
#include "common/base/errno_status.h"
#include "common/base/mapped_memory.h"
#include "common/base/spin_budget.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/layout/superblock.h"
#include "common/protocol/racy_copy.h"
#include "common/transport/shm/client_handshake.h"
#include "common/transport/shm/pull_buffers.h"
#include "common/transport/shm/ring.h"
#include "common/transport/shm/session_segment.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

constexpr size_t kReadsMax = 1024;
constexpr int64_t kSpinNs = 30'000;  // about what a wake-up from sleep costs

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

class Channel final : public ClientChannel {
 public:
  explicit Channel(ShmAdmission admission)
      : socket_(std::move(admission.socket)),
        region_(std::move(admission.region)),
        segment_(std::move(admission.segment)),
        requests_(segment_.base() + admission.layout.requests_offset(), admission.layout),
        replies_(segment_.base() + admission.layout.replies_offset(), admission.layout),
        buffers_(socket_.get()),
        reply_(admission.layout.frame_bytes / 8 + 1),
        credits_(admission.layout.credits),
        spin_(kSpinNs) {
    welcome_ = admission.welcome;
    window_ = std::span(region_.base(), region_.length_bytes());
    ended_ = &reinterpret_cast<const SessionHeader*>(segment_.base())->closed;
    had_lifeline_ = LifelineAlive(LifelineWord());
  }

  absl::Status status() override {
    if (!broken_.ok()) return broken_;
    if (header().closed.load(std::memory_order_acquire) != 0) {
      Break(CloseReason());
    } else if (had_lifeline_ ? !LifelineAlive(LifelineWord()) : SocketEnded()) {
      Break(absl::UnavailableError("the server went away"));
    }
    return broken_;
  }

  absl::StatusOr<TransferBuffer> Allocate(size_t bytes) override {
    KVD_RETURN_IF_ERROR(status());
    return buffers_.Allocate(bytes);
  }
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages) override {
    KVD_RETURN_IF_ERROR(status());
    return buffers_.Register(std::move(pages));
  }
  void Free(const TransferBuffer& buffer) override { buffers_.Free(buffer); }

  size_t reads_max() const override { return kReadsMax; }
  absl::Status PostReads(std::span<const ReadOp> ops) override;
  void GiveUpRead(uint64_t) override {}  // it is done already
  size_t PollReads(std::span<ReadCompletion> completions) override;

  absl::Status Send(const FrameParts& frame) override;
  std::span<const std::byte> PollReply() override;
  absl::Status Wait(int64_t deadline_ns) override;

  bool PrepareToSleep() override {
    header().client_sleeping.store(1,
                                   std::memory_order_seq_cst);  // partner: ShmServerChannel::Wake
    return !SomethingToPoll() && status().ok();
  }
  void FinishSleep() override {
    header().client_sleeping.store(0, std::memory_order_relaxed);
    DrainSocket().IgnoreError();  // status() says it again
  }
  std::vector<int> event_fds() const override { return {socket_.get()}; }

 private:
  struct Words {
    std::atomic_ref<uint32_t> server_sleeping;
    std::atomic_ref<uint32_t> client_sleeping;
    std::atomic_ref<uint32_t> closed;
  };

  Words header() {
    auto* at = reinterpret_cast<SessionHeader*>(segment_.base());
    return Words{std::atomic_ref(at->server_sleeping), std::atomic_ref(at->client_sleeping),
                 std::atomic_ref(at->closed)};
  }

  uint32_t LifelineWord() const {
    return static_cast<uint32_t>(RacyLoad64(window_.data() + ToBytes(kLifelineOffset)));
  }

  bool SomethingToPoll() { return !completions_.empty() || (!replies_broken_ && replies_.Ready()); }
  void Break(absl::Status cause) {
    if (broken_.ok()) broken_ = std::move(cause);
  }
  absl::Status CloseReason();
  bool SocketEnded();
  absl::Status DrainSocket();
  bool Spin(int64_t deadline_ns);
  absl::Status Sleep(int64_t deadline_ns);

  UniqueFd socket_;
  MappedMemory region_;
  MappedMemory segment_;
  RingProducer requests_;
  RingConsumer replies_;
  PullBuffers buffers_;
  std::vector<uint64_t> reply_;
  std::deque<ReadCompletion> completions_;
  uint32_t credits_;
  SpinBudget spin_;
  bool had_lifeline_ = false;
  bool replies_broken_ = false;
  absl::Status broken_;
};

absl::Status Channel::CloseReason() {
  const auto* at = reinterpret_cast<const SessionHeader*>(segment_.base());
  char text[kSessionTextBytes];
  RacyCopy(text, at->text, sizeof(text));
  const uint32_t code = header().closed.load(std::memory_order_relaxed);
  const std::string reason(text, strnlen(text, sizeof(text)));
  // What the server says about a peer's fault is not for the application to act on: whatever ends a
  // session is Unavailable, except that the peer broke the protocol.
  if (code == static_cast<uint32_t>(absl::StatusCode::kInvalidArgument)) {
    return absl::DataLossError(absl::StrCat("the server closed the session: ", reason));
  }
  return absl::UnavailableError(absl::StrCat("the server closed the session: ", reason));
}

bool Channel::SocketEnded() {
  pollfd socket{socket_.get(), POLLRDHUP, 0};
  return poll(&socket, 1, 0) > 0 && (socket.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

absl::Status Channel::PostReads(std::span<const ReadOp> ops) {
  KVD_RETURN_IF_ERROR(status());
  if (ops.size() > kReadsMax - completions_.size()) {
    return absl::ResourceExhaustedError(absl::StrCat("at most ", kReadsMax,
                                                     " READs may be outstanding, ",
                                                     completions_.size(), " are: poll first"));
  }
  for (const ReadOp& op : ops) {
    const uint64_t offset = ToBytes(op.offset);
    if (offset > window_.size() || op.length > window_.size() - offset ||
        (offset | op.length) % 8 != 0) {
      return absl::InvalidArgumentError(absl::StrCat("READ of ", op.length, " bytes at ", offset,
                                                     " in a region of ", window_.size()));
    }
  }
  for (const ReadOp& op : ops) {
    RacyCopy(op.into, window_.data() + ToBytes(op.offset), op.length);
    completions_.push_back(ReadCompletion{op.id, true});
  }
  return absl::OkStatus();
}

size_t Channel::PollReads(std::span<ReadCompletion> completions) {
  const size_t count = std::min(completions.size(), completions_.size());
  std::copy_n(completions_.begin(), count, completions.begin());
  completions_.erase(completions_.begin(),
                     completions_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

absl::Status Channel::Send(const FrameParts& frame) {
  if (frame.bytes() > welcome_.frame_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", frame.bytes(), " bytes; the limit is ", welcome_.frame_bytes));
  }
  KVD_RETURN_IF_ERROR(status());
  if (credits_ == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", welcome_.credits, " credits are in use: take a reply first"));
  }
  --credits_;
  requests_.Push(frame);
  // seq_cst, after the seq_cst store in Push: the partner is ShmServerEndpoint::PrepareToSleep
  // (ring.h). Whoever takes the word back from 1 to 0 owes the doorbell, so one sleep is rung for
  // once.
  if (header().server_sleeping.load(std::memory_order_seq_cst) != 0 &&
      header().server_sleeping.exchange(0, std::memory_order_seq_cst) != 0) {
    const std::byte bell{kDoorbell};
    // EAGAIN: the socket is full of packets that wake the server just as well. EPIPE: status() will
    // say so.
    SendPacket(socket_.get(), std::span(&bell, 1));
  }
  return absl::OkStatus();
}

std::span<const std::byte> Channel::PollReply() {
  size_t length = 0;
  switch (replies_.Take(reinterpret_cast<std::byte*>(reply_.data()), length)) {
    case RingConsumer::Taken::kNothing:
      return {};
    case RingConsumer::Taken::kBroken:
      replies_broken_ = true;
      Break(absl::DataLossError("the server wrote a reply that cannot be"));
      return {};
    case RingConsumer::Taken::kFrame:
      break;
  }
  if (length == 0 || credits_ == welcome_.credits) {
    Break(absl::DataLossError("the server sent an empty reply, or one too many"));
    return {};
  }
  ++credits_;
  return std::as_bytes(std::span(reply_)).first(length);
}

absl::Status Channel::Wait(int64_t deadline_ns) {
  for (;;) {
    if (Spin(deadline_ns)) return absl::OkStatus();
    if (absl::Status ended = status(); !ended.ok()) {
      // A reply may have come with the end since the last look; it is not lost.
      return SomethingToPoll() ? absl::OkStatus() : ended;
    }
    KVD_RETURN_IF_ERROR(Sleep(deadline_ns));
    if (SomethingToPoll()) return absl::OkStatus();
    if (NowNs() >= deadline_ns) return absl::DeadlineExceededError("no answer in time");
  }
}

bool Channel::Spin(int64_t deadline_ns) {
  if (SomethingToPoll()) return true;
  if (spin_.ns() == 0) return false;
  const int64_t until = std::min(deadline_ns, NowNs() + spin_.ns());
  do {
    for (int i = 0; i < 32; ++i) {
      if (SomethingToPoll()) {
        spin_.Paid();
        return true;
      }
      CpuRelax();
    }
    OfferCore();
  } while (NowNs() < until && header().closed.load(std::memory_order_relaxed) == 0);
  spin_.DidNotPay();
  return false;
}

// Ok: woken, or there was something to poll, or the deadline has passed.
absl::Status Channel::Sleep(int64_t deadline_ns) {
  header().client_sleeping.store(1, std::memory_order_seq_cst);  // partner: ShmServerChannel::Wake
  if (!SomethingToPoll()) {
    const int64_t left_ns = std::max<int64_t>(0, deadline_ns - NowNs());
    const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    pollfd socket{socket_.get(), POLLIN | POLLRDHUP, 0};
    ppoll(&socket, 1, &timeout, nullptr);
  }
  header().client_sleeping.store(0, std::memory_order_relaxed);
  return DrainSocket();
}

absl::Status Channel::DrainSocket() {
  for (;;) {
    std::byte bell{};
    Packet packet;
    const int error = ReceivePacket(socket_.get(), std::span(&bell, 1), packet);
    if (error == EAGAIN) return absl::OkStatus();
    if (error == 0 && packet.bytes == 1 && bell == std::byte{kDoorbell}) continue;
    // A reply may have come with the end; it is not lost, since PollReply asks the ring alone.
    if (SomethingToPoll()) return absl::OkStatus();
    if (header().closed.load(std::memory_order_acquire) != 0) {
      Break(CloseReason());
    } else if (error == 0 && packet.bytes > 0) {
      Break(absl::DataLossError("the server sent a packet that is no doorbell"));
    } else {
      Break(absl::UnavailableError("the server went away"));
    }
    return broken_;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientChannel>> ShmClientChannel::Connect(
    const std::string& path, const Hello& hello, int64_t deadline_ns,
    std::shared_ptr<const AccessKey> key) {
  KVD_ASSIGN_OR_RETURN(ShmAdmission admission,
                       ShmHandshake(path, hello, std::move(key), deadline_ns));
  return std::make_unique<Channel>(std::move(admission));
}

}  // namespace kvd
