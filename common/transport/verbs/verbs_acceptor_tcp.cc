// The acceptor's part without rdma_cm: peers that connect by a TCP exchange.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/tcp_exchange.h"
#include "common/transport/verbs/verbs_acceptor.h"

namespace kvd::verbs {
namespace {

// What epoll says of a descriptor: a connection's number, the listener, or a greeting with its
// descriptor.
constexpr uint64_t kListenerData = 0;
constexpr uint64_t kGreetingBit = uint64_t{1} << 63;

constexpr int kAcceptsMax = 64;            // before others have their turn
constexpr int64_t kPauseNs = 100'000'000;  // between attempts to accept without descriptors

void Watch(int epoll, int fd, uint64_t data) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = data;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

absl::Status VerbsAcceptor::StartTcp(UniqueFd listening, Admission& admission) {
  if (!wake_.valid()) return absl::ResourceExhaustedError("no descriptor for an eventfd");
  admission_ = &admission;
  tcp_listener_ = std::move(listening);
  tcp_epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!tcp_epoll_.valid()) return ErrnoStatus("epoll_create1");
  spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (listen(tcp_listener_.get(), kBacklog) != 0) return ErrnoStatus("listen");
  Watch(tcp_epoll_.get(), tcp_listener_.get(), kListenerData);
  WatchDevice();
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void VerbsAcceptor::TakeTcpEvents() {
  std::array<epoll_event, 16> ready;
  const int count = epoll_wait(tcp_epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t data = ready[static_cast<size_t>(i)].data.u64;
    if (data == kListenerData) {
      AcceptTcp();
    } else if ((data & kGreetingBit) != 0) {
      TakeExchange(static_cast<int>(data & ~kGreetingBit));
    } else {
      // Nothing is ever said here any more: it is the peer's end.
      const auto at = connections_.find(ChannelId{data});
      if (at != connections_.end()) at->second.socket.Reset();
      Ended(ChannelId{data}, absl::UnavailableError("the client went away"));
    }
  }
}

void VerbsAcceptor::AcceptTcp() {
  {
    const std::lock_guard lock(mutex_);
    if (not_accepting_) {
      epoll_ctl(tcp_epoll_.get(), EPOLL_CTL_DEL, tcp_listener_.get(), nullptr);
      return;
    }
  }
  for (int i = 0; i < kAcceptsMax; ++i) {
    UniqueFd socket(accept4(tcp_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) PauseAccepting();
      return;
    }
    Count(options_.counters->connects);
    // One that says nothing keeps nobody out.
    if (greetings_.size() >= kHandshakesMax) GiveUpOldestGreeting();
    const int fd = socket.get();
    Watch(tcp_epoll_.get(), fd, kGreetingBit | static_cast<uint64_t>(fd));
    greetings_[fd] =
        Greeting{std::move(socket), RealClock::Get().NowMonotonicNs() + kHandshakeNs, {}};
  }
}

void VerbsAcceptor::GiveUpOldestGreeting() {
  const auto oldest = std::min_element(
      greetings_.begin(), greetings_.end(),
      [](const auto& a, const auto& b) { return a.second.deadline_ns < b.second.deadline_ns; });
  const int fd = oldest->first;
  TakeExchange(fd);  // it may have spoken by now
  if (!greetings_.contains(fd)) return;
  RefuseTcp(fd, WelcomeStatus::kFull, "too many handshakes at once");
  greetings_.erase(fd);
}

// Without descriptors the listener would stay readable and this thread would spin: it tells
// those who wait why, with the descriptor that was kept for this, and does not listen for a moment.
void VerbsAcceptor::PauseAccepting() {
  spare_.Reset();
  for (int i = 0; i < kAcceptsMax; ++i) {
    const UniqueFd socket(
        accept4(tcp_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) break;
    Count(options_.counters->connects);
    RefuseTcp(socket.get(), WelcomeStatus::kFull, "kvd has no descriptors left (ulimit -n)");
  }
  spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  epoll_ctl(tcp_epoll_.get(), EPOLL_CTL_DEL, tcp_listener_.get(), nullptr);
  resume_at_ns_ = RealClock::Get().NowMonotonicNs() + kPauseNs;
}

void VerbsAcceptor::ResumeAccepting() {
  resume_at_ns_ = 0;
  Watch(tcp_epoll_.get(), tcp_listener_.get(), kListenerData);
}

void VerbsAcceptor::RefuseTcp(int fd, WelcomeStatus status, std::string_view why) {
  Count(options_.counters->rejects);
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  const bool is_known = getpeername(fd, peer.get(), &peer.length) == 0;
  NoteRefusal(is_known ? ToText(peer.get()) : "", Hello{}, why);
  const ExchangeData refusal = RefuseExchange(status, why);
  [[maybe_unused]] const ssize_t sent = send(fd, &refusal, sizeof(refusal), MSG_NOSIGNAL);
}

void VerbsAcceptor::TakeExchange(int fd) {
  const auto at = greetings_.find(fd);
  if (at == greetings_.end()) return;
  std::vector<std::byte>& bytes = at->second.bytes;
  std::array<std::byte, sizeof(ExchangeData)> more;
  const ssize_t got = recv(fd, more.data(), sizeof(ExchangeData) - bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) bytes.insert(bytes.end(), more.begin(), more.begin() + got);
  if (got > 0 && bytes.size() < sizeof(ExchangeData)) return;
  Greeting greeting = std::move(at->second);
  greetings_.erase(at);
  epoll_ctl(tcp_epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (got <= 0) return;  // it has gone
  absl::Status done;
  try {
    done = Exchange(greeting.socket, greeting.bytes);
  } catch (const std::bad_alloc&) {
    done = absl::ResourceExhaustedError("kvd is out of memory");
  }
  if (done.ok() || !greeting.socket.valid()) return;
  RefuseTcp(fd, RefusalOf(done), ToStd(done.message()));
}

// Takes the socket only if the connection was handed to an endpoint.
absl::Status VerbsAcceptor::Exchange(UniqueFd& socket, std::span<const std::byte> request) {
  ExchangeData peer;
  KVD_RETURN_IF_ERROR(ParseExchange(request, false, peer));
  SocketAddress local;
  SocketAddress remote;
  local.length = remote.length = sizeof(local.storage);
  if (getsockname(socket.get(), local.get(), &local.length) != 0) return ErrnoStatus("getsockname");
  if (getpeername(socket.get(), remote.get(), &remote.length) != 0)
    return ErrnoStatus("getpeername");
  if (Going()) return gone_cause_;
  const ReadDepth depth = Negotiate(options_.limits.depth, peer.initiator, peer.responder);
  Connection connection;
  connection.address = ToText(remote.get());
  ExchangeData mine;
  const auto bring_up = [&](QueuePair& qp) -> absl::Status {
    LocalEnd end;
    KVD_ASSIGN_OR_RETURN(mine,
                         DescribeEnd(*options_.device->context(), options_.port, options_.gid_index,
                                     local.get(), qp, options_.limits.depth, end));
    return ConnectByHand(qp, end, mine, peer, depth);
  };
  KVD_ASSIGN_OR_RETURN(const ChannelId channel,
                       Open(peer.credits_wanted, depth, bring_up, std::move(connection)));
  Connection& opened = connections_.at(channel);
  opened.ends = {.client = EndOf(peer), .server = EndOf(mine)};
  opened.socket = std::move(socket);
  Watch(tcp_epoll_.get(), opened.socket.get(), static_cast<uint64_t>(channel));
  if (send(opened.socket.get(), &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine)) {
    opened.endpoint->End(channel, absl::UnavailableError("the client went away"), false);
  }
  return absl::OkStatus();
}

}  // namespace kvd::verbs
