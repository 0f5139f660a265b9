#include "common/transport/verbs/verbs_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"
#include "common/transport/verbs/address.h"

namespace kvd::verbs {
namespace {

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

// An id carries its connection's number, 0 for the listener.
ChannelId ChannelOf(rdma_cm_id* id) { return ChannelId{reinterpret_cast<uint64_t>(id->context)}; }

}  // namespace

VerbsAcceptor::VerbsAcceptor(Options options, std::shared_ptr<CmEventChannel> events)
    : options_(std::move(options)),
      events_(std::move(events)),
      async_(options_.pd->context()),
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
    if (connection.id.get() != nullptr) rdma_disconnect(connection.id.get());
  }
}

absl::Status VerbsAcceptor::Start(CmId bound, Admission& admission) {
  if (!wake_.valid()) return absl::ResourceExhaustedError("no descriptor for an eventfd");
  admission_ = &admission;
  listener_ = std::move(bound);
  if (rdma_listen(listener_.get(), kBacklog) != 0) return ErrnoStatus("rdma_listen");
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void VerbsAcceptor::StopAccepting() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(not_accepting_, true)) return;
  }
  listener_.Reset();
  // Peers are refused at once; the descriptor stays the thread's.
  if (tcp_listener_.valid()) shutdown(tcp_listener_.get(), SHUT_RDWR);
}

void VerbsAcceptor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void VerbsAcceptor::HelloArrived(ChannelId channel, std::span<const std::byte> hello) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(Command{channel, false, {hello.begin(), hello.end()}});
  }
  Wake();
}

void VerbsAcceptor::Retired(ChannelId channel) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(Command{channel, true, {}});
  }
  Wake();
}

// --- The thread ---

void VerbsAcceptor::Run() {
  for (;;) {
    std::array<pollfd, 4> fds{pollfd{wake_.get(), POLLIN, 0},
                              pollfd{events_ == nullptr ? -1 : events_->fd(), POLLIN, 0},
                              pollfd{async_.fd(), POLLIN, 0}, pollfd{tcp_epoll_.get(), POLLIN, 0}};
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
    if (fds[3].revents != 0) TakeTcpEvents();
    DropLate();
  }
}

int VerbsAcceptor::WaitMs() const {
  if (handshakes_ == 0 && greetings_.empty()) return -1;
  int64_t until_ns = std::numeric_limits<int64_t>::max();
  for (const auto& [fd, greeting] : greetings_) until_ns = std::min(until_ns, greeting.deadline_ns);
  for (const auto& [id, connection] : connections_) {
    if (connection.deadline_ns != 0) until_ns = std::min(until_ns, connection.deadline_ns);
  }
  if (until_ns == std::numeric_limits<int64_t>::max()) return -1;
  return static_cast<int>(std::max<int64_t>(0, until_ns - NowNs()) / 1'000'000 + 1);
}

void VerbsAcceptor::DropLate() {
  if (handshakes_ == 0 && greetings_.empty()) return;
  const int64_t now_ns = NowNs();
  std::erase_if(greetings_,
                [&](const auto& greeting) { return greeting.second.deadline_ns <= now_ns; });
  for (auto& [id, connection] : connections_) {
    if (connection.deadline_ns == 0 || connection.deadline_ns > now_ns) continue;
    connection.deadline_ns = 0;
    --handshakes_;
    connection.endpoint->End(id, absl::DeadlineExceededError("no hello within 2 s"), true);
  }
}

void VerbsAcceptor::TakeCommands() {
  std::vector<Command> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(commands_);
  }
  for (const Command& command : taken) {
    const auto at = connections_.find(command.channel);
    if (at == connections_.end()) continue;
    if (!command.retired) {
      Greet(command.channel, command.hello);
      continue;
    }
    Connection& connection = at->second;
    if (connection.deadline_ns != 0) --handshakes_;
    if (connection.id.get() != nullptr) rdma_disconnect(connection.id.get());
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
        EndAll(absl::UnavailableError(
            absl::StrCat("the RDMA device ", options_.pd->context()->name(), " is being removed")));
        break;
      default:
        Ended(ChannelOf(event->id),
              absl::UnavailableError(absl::StrCat("rdma_cm: ", rdma_event_str(event->type), " (",
                                                  event->status, ")")));
        break;
    }
  }
}

void VerbsAcceptor::TakeAsyncEvents() {
  while (const std::optional<AsyncEvent> event = async_.Take()) {
    if (event->type == IBV_EVENT_COMM_EST) {
      // The first message was faster than rdma_cm's own last word, which may be lost.
      for (auto& [id, connection] : connections_) {
        if (connection.qp->number() == event->qp_number && connection.id.get() != nullptr) {
          rdma_notify(connection.id.get(), IBV_EVENT_COMM_EST);
        }
      }
      continue;
    }
    if (event->type == IBV_EVENT_QP_LAST_WQE_REACHED || event->type == IBV_EVENT_SQ_DRAINED)
      continue;
    Count(options_.counters->async_events);
    options_.log(absl::StrCat("RDMA: ", event->text));
    const absl::Status cause = absl::UnavailableError(event->text);
    if (event->device_fatal()) EndAll(cause);
    if (event->queue_pair_fatal()) {
      for (auto& [id, connection] : connections_) {
        if (connection.qp->number() == event->qp_number) connection.endpoint->End(id, cause, false);
      }
    }
  }
}

void VerbsAcceptor::Ended(ChannelId channel, const absl::Status& cause) {
  const auto at = connections_.find(channel);
  if (at != connections_.end()) at->second.endpoint->End(channel, cause, false);
}

void VerbsAcceptor::EndAll(const absl::Status& cause) {
  options_.log(absl::StrCat("RDMA: all sessions end: ", cause.message()));
  for (auto& [id, connection] : connections_) connection.endpoint->End(id, cause, false);
}

// --- A new connection ---

void VerbsAcceptor::Reject(rdma_cm_id* id, WelcomeStatus status, std::string_view why) {
  Count(options_.counters->rejects);
  const RejectData data = MakeReject(status, why);
  rdma_reject(id, &data, sizeof(data));
}

void VerbsAcceptor::Connect(CmEvent event) {
  Count(options_.counters->connects);
  CmId id = CmId::Adopt(events_, event.id);
  bool not_accepting = false;
  {
    const std::lock_guard lock(mutex_);
    not_accepting = not_accepting_;
  }
  if (not_accepting) return Reject(id.get(), WelcomeStatus::kShuttingDown, "kvd is shutting down");
  absl::Status accepted;
  try {
    accepted = Accept(event, id);
  } catch (const std::bad_alloc&) {
    accepted = absl::ResourceExhaustedError("kvd is out of memory");
  }
  if (accepted.ok()) return;
  if (id.get() != nullptr) Reject(id.get(), RefusalOf(accepted), ToStd(accepted.message()));
}

// Takes the id only if the connection was handed to an endpoint.
absl::Status VerbsAcceptor::Accept(const CmEvent& event, CmId& id) {
  ConnectData data;
  KVD_RETURN_IF_ERROR(
      ParseConnectData(std::span(event.private_data).first(event.private_bytes), data));
  const std::string device = ibv_get_device_name(id.get()->verbs->device);
  if (device != options_.pd->context()->name()) {
    return absl::PermissionDeniedError(
        absl::StrCat("kvd serves by ", options_.pd->context()->name(), ", not by ", device));
  }
  const ReadDepth depth =
      Negotiate(options_.limits.depth, event.responder_resources, event.initiator_depth);
  Connection connection;
  connection.address = ToText(rdma_get_peer_addr(id.get()));
  const auto bring_up = [&](QueuePair& qp) -> absl::Status {
    KVD_RETURN_IF_ERROR(qp.InitByCm(id.get()));
    return qp.ConnectByCm(id.get(), depth);
  };
  KVD_ASSIGN_OR_RETURN(const ChannelId channel,
                       Open(data.credits_wanted, depth, bring_up, std::move(connection)));
  Connection& opened = connections_.at(channel);
  opened.id = std::move(id);
  opened.id.get()->context = reinterpret_cast<void*>(static_cast<uint64_t>(channel));
  rdma_conn_param parameters{};
  parameters.responder_resources = depth.responder;
  parameters.initiator_depth = depth.initiator;
  parameters.rnr_retry_count = kRnrRetryForEver;
  parameters.qp_num = opened.qp->number();
  parameters.srq = 1;
  if (rdma_accept(opened.id.get(), &parameters) != 0) {
    opened.endpoint->End(channel, ErrnoStatus("accepting an RDMA connection"), false);
  }
  return absl::OkStatus();
}

absl::StatusOr<ChannelId> VerbsAcceptor::Open(
    uint32_t credits_wanted, const ReadDepth& depth,
    const std::function<absl::Status(QueuePair&)>& bring_up, Connection connection) {
  if (handshakes_ >= kHandshakesMax)
    return absl::ResourceExhaustedError("too many handshakes at once");
  VerbsServerEndpoint& endpoint =
      **std::min_element(options_.endpoints.begin(), options_.endpoints.end(),
                         [](const VerbsServerEndpoint* a, const VerbsServerEndpoint* b) {
                           return a->load() < b->load();
                         });
  const uint32_t credits = std::clamp<uint32_t>(credits_wanted, 1, kCreditsMax);
  KVD_RETURN_IF_ERROR(endpoint.Reserve(credits));
  QueuePairOptions wanted;
  wanted.pd = options_.pd;
  wanted.cq = endpoint.cq();
  wanted.srq = endpoint.srq();
  wanted.send_requests = VerbsServerChannel::SendsMax(credits);
  wanted.inline_bytes_wanted = kInlineBytesWanted;
  absl::StatusOr<std::shared_ptr<QueuePair>> qp = QueuePair::Create(wanted);
  const absl::Status ready = qp.ok() ? bring_up(**qp) : qp.status();
  if (!ready.ok()) {
    endpoint.GiveUp(credits);
    return ready;
  }
  const ChannelId channel{next_id_++};
  connection.qp = *qp;
  connection.endpoint = &endpoint;
  connection.queue_credits = credits;
  connection.deadline_ns = NowNs() + kHandshakeNs;
  connections_.emplace(channel, std::move(connection));
  ++handshakes_;
  endpoint.Adopt(std::make_unique<VerbsServerChannel>(
      channel, *qp, credits, std::min<uint32_t>(depth.initiator, kPullReadsMax)));
  return channel;
}

// --- Its hello ---

void VerbsAcceptor::Refuse(Connection& connection, ChannelId channel, const Welcome& refusal,
                           const absl::Status& cause) {
  Count(options_.counters->refusals);
  connection.endpoint->Refuse(channel, refusal, cause);
}

void VerbsAcceptor::Greet(ChannelId channel, std::span<const std::byte> bytes) {
  Connection& connection = connections_.at(channel);
  if (connection.deadline_ns == 0) return;  // too late
  connection.deadline_ns = 0;
  --handshakes_;
  Hello hello;
  if (const absl::Status parsed = ParseHello(bytes, hello); !parsed.ok()) {
    const bool version = absl::IsFailedPrecondition(parsed);
    Refuse(connection, channel,
           MakeRefusal(version ? WelcomeStatus::kWrongVersion : WelcomeStatus::kMalformed,
                       ToStd(parsed.message())),
           parsed);
    return;
  }
  VerbsServerEndpoint::Admitted admitted;
  admitted.hello = hello;
  admitted.peer.transport = "rdma";
  admitted.peer.address = connection.address;
  admitted.peer.uid = static_cast<uid_t>(-1);  // nobody of this host
  admitted.peer.gid = static_cast<gid_t>(-1);
  Welcome welcome = admission_->Admit(admitted.peer, hello);
  if (welcome.status != static_cast<uint32_t>(WelcomeStatus::kAdmitted)) {
    return Refuse(connection, channel, welcome, absl::PermissionDeniedError("not admitted"));
  }
  admitted.session = AdmittedSession(*admission_, welcome.session_id);
  welcome.credits = std::clamp<uint32_t>(welcome.credits, 1, connection.queue_credits);
  welcome.frame_bytes = std::min(welcome.frame_bytes, options_.frame_bytes);
  welcome.region_address = reinterpret_cast<uint64_t>(options_.region->base());
  welcome.region_key = options_.region->rkey();
  if (const absl::Status granted = connection.endpoint->GrantCredits(welcome.credits);
      !granted.ok()) {
    return Refuse(connection, channel, MakeRefusal(WelcomeStatus::kFull, ToStd(granted.message())),
                  granted);
  }
  // Only now may this peer read anything.
  if (const absl::Status allowed = connection.qp->GrantRemoteRead(); !allowed.ok()) {
    connection.endpoint->ReleaseCredits(welcome.credits);
    return connection.endpoint->End(channel, allowed, false);
  }
  admitted.welcome = welcome;
  connection.endpoint->Admit(channel, std::move(admitted));
}

}  // namespace kvd::verbs
