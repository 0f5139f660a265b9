#include "common/transport/verbs/verbs_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/transport/verbs/parked_ids.h"

namespace kvd::verbs {
namespace {

constexpr int64_t kSweepNs = 200'000'000;   // between looks at links that were down
constexpr int64_t kLookNs = 1'000'000'000;  // between looks at a device that nobody tells of

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

// An id carries its connection's number, 0 for the listener.
ChannelId ChannelOf(rdma_cm_id* id) { return ChannelId{reinterpret_cast<uint64_t>(id->context)}; }

}  // namespace

VerbsAcceptor::VerbsAcceptor(Options options, std::shared_ptr<CmEventChannel> events)
    : options_(std::move(options)),
      events_(std::move(events)),
      async_(options_.device->context()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

VerbsAcceptor::~VerbsAcceptor() {
  StopAccepting();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  for (auto& [id, connection] : connections_) {
    connection.qp->Destroy();
    if (connection.id.get() != nullptr) connection.id.Disconnect();
  }
}

absl::Status VerbsAcceptor::Start(CmId bound, Admission& admission) {
  if (!wake_.valid()) return absl::ResourceExhaustedError("no descriptor for an eventfd");
  admission_ = &admission;
  listener_ = std::move(bound);
  if (rdma_listen(listener_.get(), kBacklog) != 0) return ErrnoStatus("rdma_listen");
  WatchDevice();
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void VerbsAcceptor::StopAccepting() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(not_accepting_, true)) return;
  }
  CloseListener();
  // Peers are refused at once; the descriptor stays the thread's.
  if (tcp_listener_.valid()) shutdown(tcp_listener_.get(), SHUT_RDWR);
}

void VerbsAcceptor::CloseListener() {
  CmId closing;
  const std::lock_guard lock(mutex_);
  closing = std::move(listener_);
}

void VerbsAcceptor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void VerbsAcceptor::HelloArrived(ChannelId channel, std::span<const std::byte> hello) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(Command{Command::Kind::kHello, channel, {hello.begin(), hello.end()}});
  }
  Wake();
}

void VerbsAcceptor::Retired(ChannelId channel) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(Command{Command::Kind::kRetired, channel, {}});
  }
  Wake();
}

void VerbsAcceptor::DeviceReleased() {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(Command{Command::Kind::kDeviceReleased, {}, {}});
  }
  Wake();
}

// --- The thread ---

void VerbsAcceptor::Run() {
  for (;;) {
    std::array<pollfd, 4> fds{pollfd{wake_.get(), POLLIN, 0},
                              pollfd{events_ == nullptr ? -1 : events_->fd(), POLLIN, 0},
                              pollfd{async_.has_value() ? async_->fd() : -1, POLLIN, 0},
                              pollfd{tcp_epoll_.get(), POLLIN, 0}};
    poll(fds.data(), fds.size(), WaitMs());
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (fds[0].revents != 0) {
      uint64_t ignored;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &ignored, sizeof(ignored));
    }
    TakeCommands();
    if (fds[1].revents != 0) TakeCmEvents();
    if (fds[2].revents != 0) TakeAsyncEvents();
    LookAtDevice();
    if (fds[3].revents != 0) TakeTcpEvents();
    DropLate();
    if (resume_at_ns_ != 0 && NowNs() >= resume_at_ns_) ResumeAccepting();
    GoOnReleasing();
    ParkedIds::OfProcess().Sweep();
  }
}

int VerbsAcceptor::WaitMs() const {
  const int64_t now_ns = NowNs();
  int64_t until_ns = std::numeric_limits<int64_t>::max();
  if (ParkedIds::OfProcess().count() > 0) until_ns = now_ns + kSweepNs;
  if (options_.device != nullptr && watch_.get() == nullptr) {
    until_ns = std::min(until_ns, now_ns + kLookNs);
  }
  if (resume_at_ns_ != 0) until_ns = std::min(until_ns, resume_at_ns_);
  for (const auto& [fd, greeting] : greetings_) until_ns = std::min(until_ns, greeting.deadline_ns);
  for (const auto& [id, connection] : connections_) {
    if (connection.deadline_ns != 0) until_ns = std::min(until_ns, connection.deadline_ns);
  }
  if (until_ns == std::numeric_limits<int64_t>::max()) return -1;
  return static_cast<int>(std::max<int64_t>(0, until_ns - now_ns) / 1'000'000 + 1);
}

void VerbsAcceptor::DropLate() {
  if (handshakes_ == 0 && greetings_.empty()) return;
  const int64_t now_ns = NowNs();
  std::erase_if(greetings_, [&](const auto& greeting) {
    if (greeting.second.deadline_ns > now_ns) return false;
    RefuseTcp(greeting.first, WelcomeStatus::kMalformed, "no connect data within 2 s");
    return true;
  });
  for (auto& [id, connection] : connections_) {
    if (connection.deadline_ns == 0 || connection.deadline_ns > now_ns) continue;
    connection.deadline_ns = 0;
    --handshakes_;
    const bool is_silent = connection.dialogue == nullptr;
    const char* const why = is_silent ? "no hello within 2 s" : "no proof of a key within 2 s";
    NoteRefusal(connection.address, is_silent ? Hello{} : connection.dialogue->hello(), why);
    connection.endpoint->End(id, absl::DeadlineExceededError(why), true);
  }
}

void VerbsAcceptor::TakeCommands() {
  std::vector<Command> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(commands_);
  }
  for (const Command& command : taken) {
    if (command.kind == Command::Kind::kDeviceReleased) {
      --endpoints_holding_;
      continue;
    }
    const auto at = connections_.find(command.channel);
    if (at == connections_.end()) continue;
    if (command.kind == Command::Kind::kHello) {
      Greet(command.channel, command.hello);
      continue;
    }
    Connection& connection = at->second;
    if (connection.deadline_ns != 0) --handshakes_;
    if (connection.id.get() != nullptr) connection.id.Disconnect();
    connection.qp->Destroy();
    connections_.erase(at);
  }
}

void VerbsAcceptor::TakeCmEvents() {
  while (std::optional<CmEvent> event = events_->Take()) {
    switch (event->type) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        Connect(*event);
        break;
      case RDMA_CM_EVENT_ESTABLISHED:
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        Ended(ChannelOf(event->id), absl::UnavailableError("the client went away"));
        break;
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
        if (options_.device != nullptr) DeviceGoes(RemovalCause());
        break;
      default:
        Ended(ChannelOf(event->id),
              absl::UnavailableError(absl::StrCat("rdma_cm: ", rdma_event_str(event->type), " (",
                                                  event->status, ")")));
        break;
    }
  }
}

void VerbsAcceptor::Ended(ChannelId channel, const absl::Status& cause) {
  const auto at = connections_.find(channel);
  if (at != connections_.end()) at->second.endpoint->End(channel, cause, false);
}

}  // namespace kvd::verbs
