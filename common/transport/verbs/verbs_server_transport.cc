#include "common/transport/verbs/verbs_server_transport.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/unique_fd.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/cm_id.h"
#include "common/transport/verbs/gids.h"
#include "common/transport/verbs/limits.h"
#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/rdma_context.h"
#include "common/transport/verbs/server_device.h"
#include "common/transport/verbs/verbs_acceptor.h"
#include "common/transport/verbs/verbs_counters.h"
#include "common/transport/verbs/verbs_server_endpoint.h"

namespace kvd {
namespace verbs {
namespace {

// Without their ports.
bool SameHost(const SocketAddress& a, const SocketAddress& b) {
  if (a.family() != b.family()) return false;
  if (a.family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a.get())->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b.get())->sin_addr.s_addr;
  }
  return IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(a.get())->sin6_addr,
                            &reinterpret_cast<const sockaddr_in6*>(b.get())->sin6_addr);
}

bool HasAddress(const RdmaContext& context, const SocketAddress& address) {
  const std::vector<SocketAddress> own = AddressesOf(context, address.family());
  return std::any_of(own.begin(), own.end(),
                     [&](const SocketAddress& a) { return SameHost(a, address); });
}

// The device to serve by, and its port: the named one, or the one with the bound address, or the
// first that is active.
absl::StatusOr<std::pair<std::string, uint8_t>> ChooseDevice(const std::string& named,
                                                             rdma_cm_id* bound,
                                                             const SocketAddress& bound_to) {
  if (bound != nullptr && bound->verbs != nullptr) {
    const std::string found = ibv_get_device_name(bound->verbs->device);
    if (!named.empty() && named != found) {
      return absl::InvalidArgumentError(
          absl::StrCat("the address to listen on is that of ", found, ", not of ", named));
    }
    return std::pair(found, bound->port_num);
  }
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  std::vector<std::string> names;
  for (int i = 0; devices != nullptr && i < count; ++i)
    names.emplace_back(ibv_get_device_name(devices[i]));
  if (devices != nullptr) ibv_free_device_list(devices);
  if (!named.empty()) names = {named};
  std::string seen;
  std::optional<std::pair<std::string, uint8_t>> first;
  for (const std::string& name : names) {
    const auto context = RdmaContext::Open(name);
    if (!context.ok()) {
      if (!named.empty()) return context.status();
      absl::StrAppend(&seen, "; ", context.status().message());
      continue;
    }
    for (uint8_t port = 1; port <= (*context)->attributes().phys_port_cnt; ++port) {
      const auto facts = (*context)->QueryPort(port);
      if (facts.ok() && facts->state == IBV_PORT_ACTIVE) {
        const std::pair found(name, port);
        if (!named.empty() || HasAddress(**context, bound_to)) return found;
        if (!first.has_value()) first = found;
        continue;
      }
      absl::StrAppend(&seen, "; port ", port, " of ", name, " is ",
                      facts.ok() ? ibv_port_state_str(facts->state) : "gone");
    }
  }
  if (first.has_value()) return *first;
  return absl::UnavailableError(absl::StrCat("no RDMA device has an active port", seen));
}

absl::StatusOr<CmId> Bind(std::shared_ptr<CmEventChannel> events, const HostPort& listen) {
  KVD_ASSIGN_OR_RETURN(auto addresses, Resolve(listen, true));
  absl::Status last;
  // All addresses: the IPv6 one, if it can be had, takes IPv4 too.
  if (listen.host.empty()) {
    std::stable_partition(addresses.begin(), addresses.end(),
                          [](const auto& a) { return a.family() == AF_INET6; });
  }
  for (SocketAddress& address : addresses) {
    KVD_ASSIGN_OR_RETURN(CmId id, CmId::Create(events));
    if (rdma_bind_addr(id.get(), address.get()) == 0) return id;
    last = ErrnoStatus(absl::StrCat("listening by RDMA on ", ToText(address.get())));
    if (absl::IsNotFound(last) || errno == ENODEV || errno == EADDRNOTAVAIL) {
      last = absl::InvalidArgumentError(
          absl::StrCat(last.message(), "; no RDMA device has that address"));
    }
  }
  return last;
}

absl::StatusOr<UniqueFd> BindTcp(const HostPort& listen, SocketAddress& bound_to) {
  KVD_ASSIGN_OR_RETURN(const auto addresses, Resolve(listen, true));
  absl::Status last;
  for (const SocketAddress& address : addresses) {
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (socket.valid()) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (socket.valid() && bind(socket.get(), address.get(), address.length) == 0) {
      bound_to.length = sizeof(bound_to.storage);
      if (getsockname(socket.get(), bound_to.get(), &bound_to.length) == 0) return socket;
    }
    last = ErrnoStatus(absl::StrCat("listening by TCP on ", ToText(address.get())));
  }
  return last;
}

class Transport final : public VerbsServerTransport {
 public:
  explicit Transport(const VerbsServerOptions& options) : options_(options) {}
  // Connections end before the endpoints to which they belong, those before the memory that devices
  // write.
  ~Transport() override { acceptor_.reset(); }

  absl::Status Init();

  absl::Status Start(Admission& admission) override {
    if (listening_.valid()) return acceptor_->StartTcp(std::move(listening_), admission);
    return acceptor_->Start(std::move(bound_), admission);
  }
  ServerEndpoint& endpoint(size_t poller) override { return *endpoints_.at(poller); }
  void StopAccepting() override { acceptor_->StopAccepting(); }
  std::string Describe() const override {
    return absl::StrCat("RDMA at ", listen_text_, " by ", device_name_);
  }
  uint16_t port() const override { return port_; }
  StatisticList Facts() const override;

 private:
  absl::StatusOr<bool> DecideWindows(const RdmaContext& context);
  void AddDevice(StatisticList& facts) const;

  VerbsServerOptions options_;
  Counters counters_;
  std::string device_name_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ServerDevice> device_;  // guarded by mutex_; null once it has gone
  std::string gone_cause_;                      // guarded by mutex_; empty until it goes
  bool has_windows_ = false;
  Limits limits_;
  uint8_t device_port_ = 1;
  uint16_t port_ = 0;
  std::string listen_text_;
  CmId bound_;          // kCm, until Start
  UniqueFd listening_;  // kTcp, until Start
  std::vector<std::unique_ptr<VerbsServerEndpoint>> endpoints_;
  std::unique_ptr<VerbsAcceptor> acceptor_;
};

// Whether peers read by windows; says which of the two it is.
absl::StatusOr<bool> Transport::DecideWindows(const RdmaContext& context) {
  const bool has = HasMemoryWindows(context);
  if (options_.windows == WindowPolicy::kRequire && !has) {
    return absl::FailedPreconditionError(
        absl::StrCat(context.name(),
                     " has no memory windows of type 2B: give "
                     "--rdma_windows=prefer, and know that a client that was sent away could go on "
                     "reading by another's connection"));
  }
  const bool wanted = has && options_.windows != WindowPolicy::kOff;
  options_.log(
      wanted
          ? absl::StrCat("RDMA: each session reads by a memory window of its own (type 2B)")
          : absl::StrCat(
                "RDMA: all sessions read by the region's own key, which ends with kvd: ",
                has ? "--rdma_windows=off" : context.name() + " has no memory windows of type 2B"));
  return wanted;
}

absl::Status Transport::Init() {
  KVD_ASSIGN_OR_RETURN(const HostPort listen, ParseHostPort(options_.listen));
  std::shared_ptr<CmEventChannel> events;
  SocketAddress bound_to;
  if (options_.connect == VerbsConnectMode::kCm) {
    KVD_ASSIGN_OR_RETURN(events, CmEventChannel::Create());
    KVD_ASSIGN_OR_RETURN(bound_, Bind(events, listen));
    port_ = ntohs(rdma_get_src_port(bound_.get()));
    listen_text_ = ToText(rdma_get_local_addr(bound_.get()));
  } else {
    KVD_ASSIGN_OR_RETURN(listening_, BindTcp(listen, bound_to));
    // At the same place for IPv6.
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(bound_to.get())->sin_port);
    listen_text_ = absl::StrCat(ToText(bound_to.get()), " (TCP)");
  }
  KVD_ASSIGN_OR_RETURN(const auto device, ChooseDevice(options_.device, bound_.get(), bound_to));
  device_port_ = device.second;
  KVD_ASSIGN_OR_RETURN(auto context, RdmaContext::Open(device.first));
  KVD_ASSIGN_OR_RETURN(const ibv_port_attr port_facts, context->QueryPort(device_port_));
  LimitsWanted wanted;
  wanted.read_depth = options_.read_depth;
  wanted.cq_entries = options_.cq_entries;
  wanted.srq_receives = options_.shared_receives;
  KVD_ASSIGN_OR_RETURN(limits_, ClampLimits(context->attributes(), port_facts, wanted));
  if (!limits_.notes.empty())
    options_.log(absl::StrCat("RDMA: ", context->name(), " allows ", limits_.notes));
  device_name_ = context->name();
  auto device_held = std::make_shared<ServerDevice>();
  KVD_ASSIGN_OR_RETURN(device_held->pd, ProtectionDomain::Create(std::move(context)));
  KVD_ASSIGN_OR_RETURN(device_held->has_windows, DecideWindows(*device_held->pd->context()));
  // Peers may read, nobody may write: what the device itself writes are the values it pulls. Where
  // each reads by a window, the region's own key is good for nothing.
  const int readable = device_held->has_windows ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_READ;
  KVD_ASSIGN_OR_RETURN(
      device_held->region,
      MemoryRegion::Register(device_held->pd, {options_.region_base, options_.region_bytes},
                             IBV_ACCESS_LOCAL_WRITE | readable));
  has_windows_ = device_held->has_windows;
  device_ = device_held;

  VerbsAcceptor::Options accepting;
  accepting.device = device_;
  accepting.limits = limits_;
  accepting.frame_bytes = options_.frame_bytes;
  accepting.log = options_.log;
  accepting.counters = &counters_;
  accepting.port = device_port_;
  accepting.gid_index = options_.gid_index;
  accepting.device_goes = [this](const absl::Status& cause) {
    const std::lock_guard lock(mutex_);
    gone_cause_ = ToStd(cause.message());
  };
  accepting.device_released = [this] {
    const std::lock_guard lock(mutex_);
    device_.reset();
  };
  acceptor_ = std::make_unique<VerbsAcceptor>(std::move(accepting), std::move(events));
  std::vector<VerbsServerEndpoint*> raw;
  for (size_t i = 0; i < options_.pollers; ++i) {
    VerbsServerEndpoint::Options of_endpoint;
    of_endpoint.device = device_;
    of_endpoint.limits = limits_;
    of_endpoint.frame_bytes = options_.frame_bytes;
    of_endpoint.owner = acceptor_.get();
    of_endpoint.counters = &counters_;
    KVD_ASSIGN_OR_RETURN(auto endpoint, VerbsServerEndpoint::Create(of_endpoint));
    raw.push_back(endpoint.get());
    endpoints_.push_back(std::move(endpoint));
  }
  acceptor_->set_endpoints(std::move(raw));
  return absl::OkStatus();
}

void Transport::AddDevice(StatisticList& facts) const {
  const std::lock_guard lock(mutex_);
  facts.Text("rdma_device_state", gone_cause_.empty()  ? "present"
                                  : device_ != nullptr ? absl::StrCat("going: ", gone_cause_)
                                                       : absl::StrCat("gone: ", gone_cause_));
  facts.Gauge("", gone_cause_.empty() ? 1 : 0,
              {.name = "kvd_rdma_device_up", .help = "1 while the RDMA device is there."});
  bool active = false;
  if (device_ != nullptr) {
    if (const auto port = device_->context()->QueryPort(device_port_); port.ok()) {
      active = port->state == IBV_PORT_ACTIVE;
      facts.Text("rdma_port_state", ibv_port_state_str(port->state));
      facts.Gauge("rdma_mtu_bytes", MtuBytes(port->active_mtu), {.help = "MTU of the RDMA port."});
    }
  }
  facts.Gauge("", active ? 1 : 0,
              {.name = "kvd_rdma_port_up", .help = "1 while the RDMA port is active."});
}

StatisticList Transport::Facts() const {
  StatisticList facts;
  const auto info = [](std::string_view label) {
    return Metric{
        .name = "kvd_rdma_info", .help = "By which RDMA device kvd serves.", .label = label};
  };
  facts.Text("rdma_device", device_name_, info("device"));
  facts.Gauge("rdma_port", device_port_);
  facts.Text("rdma_listen", listen_text_, info("listen"));
  AddDevice(facts);
  const auto gauge = [&](std::string_view name, uint64_t value, std::string_view help) {
    facts.Gauge(name, value, {.help = help});
  };
  gauge("rdma_windows", has_windows_ ? 1 : 0,
        "1: each RDMA session reads by a memory window of its own; 0: all by the region's key.");
  gauge("rdma_reads_incoming_max", limits_.depth.responder,
        "RDMA READs that a client may have under way at once.");
  gauge("rdma_reads_outgoing_max", limits_.depth.initiator,
        "RDMA READs that kvd may have under way at one client.");
  gauge("rdma_read_piece_bytes", limits_.read_piece_bytes,
        "The most that one of kvd's own RDMA READs fetches.");
  facts.Gauge("rdma_inline_bytes_wanted", kInlineBytesWanted);
  gauge("rdma_cq_entries", limits_.cq_entries, "Completions that a poller's queue holds.");
  gauge("rdma_srq_receives", limits_.srq_receives,
        "Receives that a poller has posted for all its clients.");
  gauge("rdma_region_bytes", options_.region_bytes, "Memory registered for clients to READ.");
  size_t connections = 0;
  for (const auto& endpoint : endpoints_) connections += endpoint->load();
  gauge("rdma_connections", connections, "RDMA connections, also those before their admission.");
  const auto count = [&](std::string_view name, const std::atomic<uint64_t>& counter,
                         std::string_view help) {
    facts.Counter(name, counter.load(std::memory_order_relaxed), {.help = help});
  };
  count("rdma_connects", counters_.connects, "RDMA connections that were asked for.");
  count("rdma_rejects", counters_.rejects,
        "RDMA connections refused before the client had said who it is.");
  count("rdma_refusals", counters_.refusals, "RDMA connections refused after it.");
  count("rdma_sessions", counters_.sessions, "RDMA sessions that were admitted.");
  count("rdma_completion_errors", counters_.completion_errors,
        "RDMA connections that broke, by their first error.");
  count("rdma_flushed", counters_.flushed, "RDMA completions that only followed from one.");
  count("rdma_protocol_errors", counters_.protocol_errors, "RDMA clients that broke the protocol.");
  count("rdma_keep_alives", counters_.keep_alives, "Keep-alives to RDMA clients that were silent.");
  count("rdma_pulls", counters_.pulls, "RDMA READs by which kvd fetched long values.");
  count("rdma_pulled_bytes", counters_.pulled_bytes, "What these fetched.");
  count("rdma_async_events", counters_.async_events, "Events that the RDMA device has told of.");
  return facts;
}

}  // namespace
}  // namespace verbs

absl::StatusOr<std::unique_ptr<VerbsServerTransport>> VerbsServerTransport::Create(
    const VerbsServerOptions& options) {
  auto transport = std::make_unique<verbs::Transport>(options);
  KVD_RETURN_IF_ERROR(transport->Init());
  return transport;
}

}  // namespace kvd
