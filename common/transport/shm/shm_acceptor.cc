#include "common/transport/shm/shm_acceptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/memory_reserve.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"
#include "common/transport/sealed_memory.h"
#include "common/transport/shm/descriptor_reserve.h"
#include "common/transport/shm/peer_credentials.h"
#include "common/transport/shm/session_segment.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

constexpr std::string_view kNoDescriptors = "kvd has no descriptors left (ulimit -n)";

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

size_t QuarterOfDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
  return std::max<size_t>(1, limit.rlim_cur / 4);
}

PeerSocket Accept(int listener) {
  return PeerSocket(UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

PeerIdentity IdentityOf(int socket, const std::string& path, const UserNamespace& here) {
  PeerCredentials credentials = PeerCredentialsOf(socket, here);
  PeerIdentity peer;
  peer.transport = "shm";
  peer.address = path;
  peer.pid = credentials.pid;
  peer.uid = credentials.user;
  peer.gid = credentials.group;
  peer.groups = std::move(credentials.groups);
  return peer;
}

struct NewSegment {
  UniqueFd fd;
  MappedMemory memory;
};

absl::StatusOr<NewSegment> MakeSegment(const SessionLayout& layout) {
  NewSegment segment;
  KVD_ASSIGN_OR_RETURN(
      segment.fd,
      MakeSealedMemory({.name = "kvd-session", .bytes = layout.segment_bytes(), .reserve = true}));
  MappedMemory::Options options;
  options.fd = segment.fd.get();
  options.length_bytes = layout.segment_bytes();
  options.protection = PROT_READ | PROT_WRITE;
  KVD_ASSIGN_OR_RETURN(segment.memory, MappedMemory::Map(options));
  auto& header = *reinterpret_cast<SessionHeader*>(segment.memory.base());
  header.magic = kSessionMagic;
  header.layout_version = kSessionLayoutVersion;
  header.credits = layout.credits;
  header.frame_bytes = layout.frame_bytes;
  header.slot_bytes = layout.slot_bytes;
  return segment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmAcceptor>> ShmAcceptor::Start(Options options,
                                                                UniqueFd listener) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("epoll_create1");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return ErrnoStatus("eventfd");
  std::unique_ptr<ShmAcceptor> acceptor(
      new ShmAcceptor(std::move(options), std::move(listener), std::move(epoll), std::move(stop)));
  acceptor->Watch(acceptor->listener_.get());
  acceptor->Watch(acceptor->stop_.get());
  try {
    acceptor->thread_ = std::thread([raw = acceptor.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for accepting clients: ", error.what()));
  }
  pthread_setname_np(acceptor->thread_.native_handle(), "kvd-accept");
  return acceptor;
}

ShmAcceptor::ShmAcceptor(Options options, UniqueFd listener, UniqueFd epoll, UniqueFd stop)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      stop_(std::move(stop)),
      spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      quarter_(QuarterOfDescriptors()),
      handshakes_max_(std::min(kHandshakesMax, quarter_)) {}

ShmAcceptor::~ShmAcceptor() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  // Clients that were never accepted may have sent descriptors, too.
  CloseElsewhere(std::move(listener_));
}

void ShmAcceptor::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ShmAcceptor::Refuse(Handshake& handshake, WelcomeStatus status, std::string_view why) {
  handshake.dialogue->Refuse(status, why);  // counted before the client can know
  SendPacket(handshake.socket.get(), std::as_bytes(std::span(&handshake.dialogue->welcome(), 1)));
}

// Answers the oldest half-open client if it has spoken by now, and otherwise refuses it. False: it
// was answered.
bool ShmAcceptor::GiveUpOldest(WelcomeStatus status, std::string_view why) {
  const int fd = handshakes_.front().socket.get();
  const size_t before = handshakes_.size();
  Answer(fd);
  if (handshakes_.size() < before) return false;
  Refuse(handshakes_.front(), status, why);
  // The socket may be closed later than it goes (descriptor_closer.h).
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handshakes_.pop_front();
  return true;
}

void ShmAcceptor::Run() {
  for (;;) {
    epoll_event ready[16];
    const int count = epoll_wait(epoll_.get(), ready, 16, WaitMs());
    for (int i = 0; i < count; ++i) {
      const int fd = ready[i].data.fd;
      if (fd == stop_.get()) {
        for (Handshake& handshake : handshakes_) {
          Refuse(handshake, WelcomeStatus::kShuttingDown, "kvd is shutting down");
        }
        return;
      }
      if (fd == listener_.get()) {
        AcceptSome();
      } else {
        Answer(fd);
      }
    }
    DropLate();
    const bool room = resume_with_room_ && handshakes_.size() < handshakes_max_;
    if (resume_at_ns_ != 0 && (room || NowNs() >= resume_at_ns_)) ResumeAccepting();
  }
}

int ShmAcceptor::WaitMs() const {
  int64_t until_ns = std::numeric_limits<int64_t>::max();
  if (!handshakes_.empty()) until_ns = handshakes_.front().deadline_ns;
  if (resume_at_ns_ != 0) until_ns = std::min(until_ns, resume_at_ns_);
  if (until_ns == std::numeric_limits<int64_t>::max()) return -1;
  return static_cast<int>(std::max<int64_t>(0, until_ns - NowNs()) / 1'000'000 + 1);
}

void ShmAcceptor::AcceptSome() {
  for (size_t i = 0; i < kAcceptedPerRound && MakeRoom(); ++i) {
    PeerSocket socket = Accept(listener_.get());
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) PauseAccepting();  // EMFILE, ENFILE, ENOMEM
      return;
    }
    try {
      const int fd = socket.get();
      WithoutReserve([&] { Begin(std::move(socket)); });
      Answer(fd);  // it may have spoken already
    } catch (const std::bad_alloc&) {
      return PauseAccepting();  // and this client sees the end of its connection
    }
  }
}

void ShmAcceptor::Begin(PeerSocket socket) {
  const int fd = socket.get();
  PeerIdentity peer = IdentityOf(fd, options_.path, here_);
  ChannelEnds ends;
  ends.client.user = peer.uid;
  ends.server.user = geteuid();
  const bool is_owner = peer.uid == geteuid() || peer.uid == 0;
  Handshake handshake{std::move(socket), NowNs() + kHandshakeNs,
                      std::make_unique<ServerDialogue>(*options_.admission, std::move(peer), ends)};
  if (!is_owner && IsOfTheReserve(fd))
    return Refuse(handshake, WelcomeStatus::kFull, kNoDescriptors);
  if (handshake.dialogue->TurnedAway()) {
    SendPacket(fd, std::as_bytes(std::span(&handshake.dialogue->welcome(), 1)));
    return;
  }
  handshakes_.push_back(std::move(handshake));
  Watch(fd);
}

// False: nobody can be accepted now. An honest client says Hello as soon as it gets the processor,
// so whoever has been silent longest is the one to give up, but not at once.
bool ShmAcceptor::MakeRoom() {
  if (DescriptorsToClose() >= quarter_) {
    StopListening(NowNs() + kCloserNs);
    return false;
  }
  if (handshakes_.size() < handshakes_max_) return true;
  const int64_t patient_until_ns = handshakes_.front().deadline_ns - kHandshakeNs + kGraceNs;
  if (NowNs() < patient_until_ns) {
    resume_with_room_ = true;
    StopListening(patient_until_ns);
    return false;
  }
  GiveUpOldest(WelcomeStatus::kFull, "too many handshakes at once");
  return true;
}

void ShmAcceptor::StopListening(int64_t until_ns) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  resume_at_ns_ = until_ns;
}

// Without descriptors the listener would stay readable and this thread would spin: it tells one
// client why, with the descriptor that was kept for this, and stops listening for a moment.
void ShmAcceptor::PauseAccepting() {
  spare_.Reset();
  PeerSocket socket = Accept(listener_.get());
  if (socket.valid()) {
    options_.admission->NoteRefusal(IdentityOf(socket.get(), options_.path, here_), Hello{},
                                    kNoDescriptors);
    const Welcome refusal = MakeRefusal(WelcomeStatus::kFull, kNoDescriptors);
    SendPacket(socket.get(), std::as_bytes(std::span(&refusal, 1)));
  }
  socket.Reset();
  spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  StopListening(NowNs() + kPauseNs);
}

void ShmAcceptor::ResumeAccepting() {
  resume_at_ns_ = 0;
  resume_with_room_ = false;
  Watch(listener_.get());
}

void ShmAcceptor::DropLate() {
  const int64_t now_ns = NowNs();
  while (!handshakes_.empty() && handshakes_.front().deadline_ns <= now_ns) {
    GiveUpOldest(WelcomeStatus::kTooLate, handshakes_.front().dialogue->challenged()
                                              ? "no answer to the challenge within 2 s"
                                              : "no hello within 2 s");
  }
}

void ShmAcceptor::Answer(int fd) {
  const auto found = std::find_if(handshakes_.begin(), handshakes_.end(),
                                  [fd](const Handshake& h) { return h.socket.get() == fd; });
  if (found == handshakes_.end()) return;      // made room for another in this round
  if (DescriptorsToClose() >= 2 * quarter_) {  // it may bring hundreds more
    Refuse(*found, WelcomeStatus::kFull, "kvd has too many descriptors to close");
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    handshakes_.erase(found);
    return;
  }
  std::byte frame[std::max(sizeof(Hello), sizeof(ChallengeAnswer)) + 1];
  Packet packet;
  // Descriptors that came along are nobody's.
  const absl::Cleanup drop = [&packet] { CloseElsewhere(packet); };
  const int error = ReceivePacket(fd, frame, packet);
  if (error == EAGAIN) return;
  const bool gone = error != 0 || packet.bytes == 0;
  if (!gone) {
    try {
      if (!Hear(*found, std::span(frame).first(packet.bytes))) return;
    } catch (const std::bad_alloc&) {
      if (found->socket.valid()) Refuse(*found, WelcomeStatus::kInternal, "kvd is out of memory");
    }
  }
  if (found->socket.valid()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handshakes_.erase(found);
}

bool ShmAcceptor::Hear(Handshake& handshake, std::span<const std::byte> frame) {
  const int fd = handshake.socket.get();
  ServerDialogue& dialogue = *handshake.dialogue;
  switch (dialogue.Take(frame)) {
    case ServerDialogue::Step::kChallenged:
      SendPacket(fd, std::as_bytes(std::span(&dialogue.challenge(), 1)));
      return false;
    case ServerDialogue::Step::kRefused:
      SendPacket(fd, std::as_bytes(std::span(&dialogue.welcome(), 1)));
      return true;
    case ServerDialogue::Step::kAdmitted:
      Admit(handshake);
      return true;
  }
  return true;
}

void ShmAcceptor::Admit(Handshake& handshake) {
  ServerDialogue& dialogue = *handshake.dialogue;
  const absl::Status done = WithoutReserve([&] { return HandOver(handshake); });
  if (done.ok()) return;
  // Out of descriptors or memory is like being full: it may be better later.
  const bool full = absl::IsResourceExhausted(done);
  dialogue.Refuse(full ? WelcomeStatus::kFull : WelcomeStatus::kInternal, ToStd(done.message()));
  SendPacket(handshake.socket.get(), std::as_bytes(std::span(&dialogue.welcome(), 1)));
}

absl::Status ShmAcceptor::HandOver(Handshake& handshake) {
  ServerDialogue& dialogue = *handshake.dialogue;
  Welcome& welcome = dialogue.welcome();
  welcome.credits = std::clamp<uint32_t>(welcome.credits, 1, kCreditsMax);
  AcceptedSession session;
  session.layout = SessionLayout::Of(welcome.credits, welcome.frame_bytes);
  KVD_ASSIGN_OR_RETURN(NewSegment segment, MakeSegment(session.layout));
  session.segment = std::move(segment.memory);
  session.hello = dialogue.hello();
  session.peer = dialogue.peer();
  session.role = static_cast<Role>(welcome.role);
  session.admitted = dialogue.TakeSession();

  dialogue.Seal();
  const int fds[] = {options_.region_fd, segment.fd.get()};
  const int fd = handshake.socket.get();
  if (SendPacket(fd, std::as_bytes(std::span(&welcome, 1)), fds) != 0) {
    return absl::OkStatus();  // it has gone
  }
  // Before an endpoint watches it.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  session.socket = std::move(handshake.socket);
  ShmServerEndpoint* least = options_.endpoints.front();
  for (ShmServerEndpoint* endpoint : options_.endpoints) {
    if (endpoint->load() < least->load()) least = endpoint;
  }
  least->Adopt(std::move(session));
  return absl::OkStatus();
}

}  // namespace kvd
