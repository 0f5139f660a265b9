#include "common/transport/verbs/client_path.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/gids.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {
namespace {

int MillisecondsLeft(int64_t deadline_ns) {
  const int64_t left_ms = (deadline_ns - RealClock::Get().NowMonotonicNs()) / 1'000'000;
  return static_cast<int>(std::clamp<int64_t>(left_ms, 1, 10'000));
}

absl::Status Failed(const CmEvent& event, const std::string& where) {
  const int error_number = event.status < 0 ? -event.status : event.status;
  const std::string code = absl::StrCat(" (", rdma_event_str(event.type), ", ", event.status, ")");
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return absl::UnavailableError(
          absl::StrCat("no RDMA device leads to ", where, code,
                       "; is the address on the device's network? (kvcli devices, ip route)"));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return absl::UnavailableError(
          absl::StrCat("no route or neighbour on the way to ", where, code));
    case RDMA_CM_EVENT_UNREACHABLE:
      return absl::UnavailableError(absl::StrCat(
          where, " does not answer", code, "; is the host up, is UDP port 4791 open on the way?"));
    case RDMA_CM_EVENT_REJECTED:
      // 28: by the application, which says why; otherwise nobody listens there.
      if (event.status == 28)
        return RejectStatus(std::span(event.private_data).first(event.private_bytes));
      return absl::UnavailableError(
          absl::StrCat("nobody listens at ", where, code, "; is kvd started with --listen?"));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return absl::UnavailableError(
          absl::StrCat("the RDMA device was removed while connecting to ", where));
    default:
      return ErrnoStatus(error_number, absl::StrCat("connecting to ", where, code));
  }
}

absl::Status Expect(CmEventChannel& events, rdma_cm_event_type wanted, const std::string& where,
                    const char* step, int64_t deadline_ns, CmEvent& event) {
  absl::StatusOr<CmEvent> got = events.Wait(deadline_ns);
  if (!got.ok()) {
    return absl::Status(got.status().code(),
                        absl::StrCat(step, " ", where, ": ", got.status().message()));
  }
  event = *got;
  // iWARP connects in one step and says so in another word.
  const bool established =
      wanted == RDMA_CM_EVENT_CONNECT_RESPONSE && event.type == RDMA_CM_EVENT_ESTABLISHED;
  return event.type == wanted || established ? absl::OkStatus() : Failed(event, where);
}

// An id whose address and route are resolved over `device`, if one is named.
absl::StatusOr<CmId> ResolveRoute(const SocketAddress& to, const std::string& device,
                                  const std::string& where, int64_t deadline_ns) {
  std::vector<SocketAddress> sources(1);  // one that says nothing
  if (!device.empty()) {
    KVD_ASSIGN_OR_RETURN(const auto context, RdmaContext::Open(device));
    sources = AddressesOf(*context, to.family());
    if (sources.empty()) {
      return absl::UnavailableError(
          absl::StrCat("device ", device, " has no address of the kind of ", where));
    }
  }
  absl::Status last;
  for (SocketAddress& source : sources) {
    KVD_ASSIGN_OR_RETURN(auto events, CmEventChannel::Create());
    KVD_ASSIGN_OR_RETURN(CmId id, CmId::Create(std::move(events)));
    SocketAddress destination = to;
    CmEvent event;
    if (rdma_resolve_addr(id.get(), source.length == 0 ? nullptr : source.get(), destination.get(),
                          MillisecondsLeft(deadline_ns)) != 0) {
      last = ErrnoStatus(absl::StrCat("finding a device that leads to ", where));
      continue;
    }
    last = Expect(id.channel(), RDMA_CM_EVENT_ADDR_RESOLVED, where,
                  "finding a device that leads to", deadline_ns, event);
    if (!last.ok()) continue;
    const std::string found = ibv_get_device_name(id.get()->verbs->device);
    if (!device.empty() && found != device) {
      last = absl::UnavailableError(
          absl::StrCat(where, " is reached by ", found, ", not by ", device));
      continue;
    }
    if (rdma_resolve_route(id.get(), MillisecondsLeft(deadline_ns)) != 0) {
      last = ErrnoStatus(absl::StrCat("finding the route to ", where));
      continue;
    }
    last = Expect(id.channel(), RDMA_CM_EVENT_ROUTE_RESOLVED, where, "finding the route to",
                  deadline_ns, event);
    if (last.ok()) return id;
  }
  return last;
}

absl::StatusOr<ClientPath> ConnectTo(const SocketAddress& to, const VerbsTarget& target,
                                     const Hello& hello, int64_t deadline_ns) {
  const std::string where = ToText(to.get());
  KVD_ASSIGN_OR_RETURN(CmId id, ResolveRoute(to, target.device, where, deadline_ns));
  KVD_ASSIGN_OR_RETURN(ClientPath path,
                       MakeClientPath(ibv_get_device_name(id.get()->verbs->device),
                                      id.get()->port_num, target, hello.credits_wanted));
  KVD_RETURN_IF_ERROR(path.qp->InitByCm(id.get()));
  // Also tells the peer, whose default would be seconds to minutes. Older kernels do not know it:
  // no matter, since both sides set their own queue pair's.
  uint8_t timeout = kAckTimeout;
  rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));

  ConnectData data = MakeConnectData(hello);
  rdma_conn_param parameters{};
  parameters.private_data = &data;
  parameters.private_data_len = sizeof(data);
  parameters.responder_resources = path.limits.depth.responder;
  parameters.initiator_depth = path.limits.depth.initiator;
  parameters.retry_count = kRetryCount;
  parameters.rnr_retry_count = kRnrRetryForEver;
  parameters.qp_num = path.qp->number();
  if (rdma_connect(id.get(), &parameters) != 0)
    return ErrnoStatus(absl::StrCat("connecting to ", where));
  CmEvent event;
  KVD_RETURN_IF_ERROR(Expect(id.channel(), RDMA_CM_EVENT_CONNECT_RESPONSE, where, "connecting to",
                             deadline_ns, event));
  path.depth = Negotiate(path.limits.depth, event.responder_resources, event.initiator_depth);
  if (event.type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
    KVD_RETURN_IF_ERROR(path.qp->ConnectByCm(id.get(), path.depth));
    if (rdma_establish(id.get()) != 0) return ErrnoStatus(absl::StrCat("connecting to ", where));
  }
  path.ends.client.address = HostBytes(rdma_get_local_addr(id.get()));
  path.ends.server.address = HostBytes(rdma_get_peer_addr(id.get()));
  path.name = absl::StrCat(where, " by ", path.pd->context()->name());
  path.id = std::move(id);
  return path;
}

}  // namespace

absl::StatusOr<ClientPath> MakeClientPath(const std::string& device, uint8_t port,
                                          const VerbsTarget& target, uint32_t credits_wanted) {
  ClientPath path;
  KVD_ASSIGN_OR_RETURN(auto context, RdmaContext::Open(device));
  KVD_ASSIGN_OR_RETURN(const ibv_port_attr port_facts, context->QueryPort(port));
  LimitsWanted wanted;
  wanted.read_depth = target.read_depth;
  KVD_ASSIGN_OR_RETURN(path.limits, ClampLimits(context->attributes(), port_facts, wanted));
  path.mtu_bytes = MtuBytes(port_facts.active_mtu);
  // As many credits as the queues of this device can hold.
  const uint32_t fixed = path.limits.depth.initiator + 16u;
  const uint32_t most =
      path.limits.qp_requests_max > fixed ? (path.limits.qp_requests_max - fixed) / 2 : 0;
  if (most == 0)
    return absl::FailedPreconditionError(absl::StrCat("the queues of ", device, " are too short"));
  path.credits = std::clamp<uint32_t>(credits_wanted, 1, std::min(most, kCreditsMax));
  QueuePairOptions options;
  options.send_requests = ClientSendsMax(path.credits) + path.limits.depth.initiator + 2;
  options.receive_requests = ClientReceives(path.credits) + 1;
  options.inline_bytes_wanted = kInlineBytesWanted;
  KVD_ASSIGN_OR_RETURN(
      path.cq, CompletionQueue::Create(context, options.send_requests + options.receive_requests));
  KVD_ASSIGN_OR_RETURN(path.pd, ProtectionDomain::Create(std::move(context)));
  options.cq = path.cq;
  options.pd = path.pd;
  KVD_ASSIGN_OR_RETURN(path.qp, QueuePair::Create(options));
  return path;
}

absl::StatusOr<ClientPath> ConnectByCm(const VerbsTarget& target, const Hello& hello,
                                       int64_t deadline_ns) {
  KVD_ASSIGN_OR_RETURN(const auto addresses, Resolve(HostPort{target.host, target.port}, false));
  absl::Status first;
  for (const SocketAddress& to : addresses) {
    absl::StatusOr<ClientPath> path = ConnectTo(to, target, hello, deadline_ns);
    // Another address helps only where this one could not be reached.
    if (path.ok() || !absl::IsUnavailable(path.status())) return path;
    if (first.ok()) first = path.status();
  }
  return first;
}

}  // namespace kvd::verbs
