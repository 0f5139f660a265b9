// How a connection begins: from rdma_cm's request, or a TCP exchange, to an admitted session.
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/verbs_acceptor.h"

namespace kvd::verbs {

namespace {

PeerIdentity PeerAt(const std::string& address) {
  PeerIdentity peer;
  peer.transport = "rdma";
  peer.address = address;
  peer.uid = static_cast<uid_t>(-1);  // nobody of this host
  peer.gid = static_cast<gid_t>(-1);
  return peer;
}

}  // namespace

// --- A new connection ---

void VerbsAcceptor::NoteRefusal(const std::string& address, const Hello& hello,
                                std::string_view why) {
  try {
    if (address.empty()) return admission_->CountRefusal();
    admission_->NoteRefusal(PeerAt(address), hello, why);
  } catch (const std::bad_alloc&) {
    // One of which nobody will read.
  }
}

void VerbsAcceptor::Reject(rdma_cm_id* id, WelcomeStatus status, std::string_view why) {
  Count(options_.counters->rejects);
  NoteRefusal(ToText(rdma_get_peer_addr(id)), Hello{}, why);
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
  if (Going()) return gone_cause_;
  const std::string device = ibv_get_device_name(id.get()->verbs->device);
  if (device != options_.device->context()->name()) {
    return absl::PermissionDeniedError(
        absl::StrCat("kvd serves by ", options_.device->context()->name(), ", not by ", device));
  }
  const ReadDepth depth =
      Negotiate(options_.limits.depth, event.responder_resources, event.initiator_depth);
  Connection connection;
  connection.address = ToText(rdma_get_peer_addr(id.get()));
  connection.ends.client.address = HostBytes(rdma_get_peer_addr(id.get()));
  connection.ends.server.address = HostBytes(rdma_get_local_addr(id.get()));
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

// The endpoint with the fewest connections of those that have room.
absl::StatusOr<VerbsServerEndpoint*> VerbsAcceptor::ReserveRoom(uint32_t credits) {
  std::vector<VerbsServerEndpoint*> by_load = options_.endpoints;
  std::stable_sort(by_load.begin(), by_load.end(),
                   [](const VerbsServerEndpoint* a, const VerbsServerEndpoint* b) {
                     return a->load() < b->load();
                   });
  absl::Status full;
  for (VerbsServerEndpoint* endpoint : by_load) {
    full = endpoint->Reserve(credits);
    if (full.ok()) return endpoint;
  }
  return full;
}

absl::StatusOr<ChannelId> VerbsAcceptor::Open(
    uint32_t credits_wanted, const ReadDepth& depth,
    const std::function<absl::Status(QueuePair&)>& bring_up, Connection connection) {
  if (Going()) return gone_cause_;
  if (handshakes_ >= kHandshakesMax)
    return absl::ResourceExhaustedError("too many handshakes at once");
  const uint32_t credits = std::clamp<uint32_t>(credits_wanted, 1, kCreditsMax);
  KVD_ASSIGN_OR_RETURN(VerbsServerEndpoint * reserved, ReserveRoom(credits));
  VerbsServerEndpoint& endpoint = *reserved;
  absl::Cleanup give_up = [&endpoint, credits] { endpoint.GiveUp(credits); };
  QueuePairOptions wanted;
  wanted.pd = options_.device->pd;
  wanted.cq = endpoint.cq();
  wanted.srq = endpoint.srq();
  wanted.send_requests = VerbsServerChannel::SendsMax(credits);
  wanted.inline_bytes_wanted = kInlineBytesWanted;
  absl::StatusOr<std::shared_ptr<QueuePair>> qp = QueuePair::Create(wanted);
  if (!qp.ok()) return qp.status();
  KVD_RETURN_IF_ERROR(bring_up(**qp));
  const ChannelId channel{next_id_++};
  connection.qp = *qp;
  connection.endpoint = &endpoint;
  connection.queue_credits = credits;
  connection.deadline_ns = RealClock::Get().NowMonotonicNs() + kHandshakeNs;
  // All that is large before the first thing that would have to be undone.
  auto adopted = std::make_unique<VerbsServerChannel>(
      channel, *qp, credits, std::min<uint32_t>(depth.initiator, kPullReadsMax));
  connections_.emplace(channel, std::move(connection));
  ++handshakes_;
  std::move(give_up).Cancel();
  endpoint.Adopt(std::move(adopted));
  return channel;
}

// --- Its hello ---

void VerbsAcceptor::Refuse(Connection& connection, ChannelId channel, const Welcome& refusal,
                           const absl::Status& cause) {
  Count(options_.counters->refusals);
  connection.endpoint->Refuse(channel, refusal, cause);
}

void VerbsAcceptor::Greet(ChannelId channel, std::span<const std::byte> message) {
  Connection& connection = connections_.at(channel);
  if (connection.deadline_ns == 0) return;  // too late
  if (connection.dialogue == nullptr) {
    ChannelEnds ends = connection.ends;
    ends.client.queue_pair = connection.qp->PeerNumber();
    ends.server.queue_pair = ends.client.queue_pair == 0 ? 0 : connection.qp->number();
    connection.dialogue =
        std::make_unique<ServerDialogue>(*admission_, PeerAt(connection.address), ends);
  }
  ServerDialogue& dialogue = *connection.dialogue;
  const ServerDialogue::Step step = dialogue.Take(message);
  // Its time for the whole handshake goes on.
  if (step == ServerDialogue::Step::kChallenged)
    return connection.endpoint->Ask(channel, dialogue.challenge());
  connection.deadline_ns = 0;
  --handshakes_;
  if (step == ServerDialogue::Step::kRefused) {
    return Refuse(connection, channel, dialogue.welcome(),
                  absl::PermissionDeniedError("not admitted"));
  }
  Admit(connection, channel);
}

void VerbsAcceptor::Admit(Connection& connection, ChannelId channel) {
  ServerDialogue& dialogue = *connection.dialogue;
  Welcome& welcome = dialogue.welcome();
  VerbsServerEndpoint::Admitted admitted;
  admitted.hello = dialogue.hello();
  admitted.peer = dialogue.peer();
  admitted.session = dialogue.TakeSession();
  welcome.credits = std::clamp<uint32_t>(welcome.credits, 1, connection.queue_credits);
  welcome.frame_bytes = std::min(welcome.frame_bytes, options_.frame_bytes);
  welcome.region_address = reinterpret_cast<uint64_t>(options_.device->region.base());
  welcome.region_key = options_.device->region.rkey();
  if (options_.device->has_windows) {
    absl::StatusOr<std::unique_ptr<MemoryWindow>> window =
        MemoryWindow::Create(options_.device->pd);
    if (!window.ok()) {
      dialogue.Refuse(WelcomeStatus::kFull, ToStd(window.status().message()));
      return Refuse(connection, channel, dialogue.welcome(), window.status());
    }
    welcome.region_key = (*window)->rkey();
    connection.qp->Keep(*std::move(window));
  }
  if (const absl::Status granted = connection.endpoint->GrantCredits(welcome.credits);
      !granted.ok()) {
    dialogue.Refuse(WelcomeStatus::kFull, ToStd(granted.message()));
    return Refuse(connection, channel, dialogue.welcome(), granted);
  }
  // Only now may this peer read anything.
  if (const absl::Status allowed = connection.qp->GrantRemoteRead(); !allowed.ok()) {
    connection.endpoint->ReleaseCredits(welcome.credits);
    return connection.endpoint->End(channel, allowed, false);
  }
  dialogue.Seal();
  admitted.welcome = welcome;
  connection.endpoint->Admit(channel, std::move(admitted));
}

}  // namespace kvd::verbs
