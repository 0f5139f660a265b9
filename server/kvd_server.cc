#include "server/kvd_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "server/kvd_memory_progress.h"
#include "server/operations/statistics.h"
#include "server/sd_notify.h"

namespace kvd {

absl::StatusOr<std::unique_ptr<KvdServer>> KvdServer::Start(const KvdPlan& plan, Log log,
                                                            StopAsked stop_asked) {
  std::unique_ptr<KvdServer> server(new KvdServer(plan, std::move(log), std::move(stop_asked)));
  KVD_RETURN_IF_ERROR(server->Start());
  return server;
}

KvdServer::KvdServer(const KvdPlan& plan, Log log, StopAsked stop_asked)
    : plan_(plan),
      log_(std::move(log)),
      stop_asked_(std::move(stop_asked)),
      started_ns_(clock_.NowMonotonicNs()) {}

absl::Status KvdServer::Start() {
  // The socket first: a second kvd must not take gigabytes before it finds out that it is one.
  std::optional<SocketClaim> claim;
  if (!plan_.options.shm_path.empty()) {
    KVD_ASSIGN_OR_RETURN(
        SocketClaim taken,
        SocketClaim::Take(plan_.options.shm_path, {.log = log_, .cancelled = stop_asked_}));
    claim.emplace(std::move(taken));
  }
  KVD_RETURN_IF_ERROR(StartAdmin());
  KVD_ASSIGN_OR_RETURN(access_, KvdAccess::Create({.keys_path = plan_.options.keys_path,
                                                   .audit_path = plan_.options.audit_path,
                                                   .log = log_},
                                                  clock_));
  KVD_RETURN_IF_ERROR(MakeRegion());
  KVD_RETURN_IF_ERROR(MakeShards());

  AdmissionPolicy::Options admission;
  admission.geometry = region_->geometry();
  admission.access = plan_.access;
  admission.audit = access_->audit();
  admission.sessions_max = plan_.options.max_clients;
  admission.of_address.sessions_max = plan_.options.max_clients_per_address;
  admission.of_address.handshakes_per_second = plan_.options.handshakes_per_second;
  admission.max_value_bytes = plan_.options.max_value_bytes;
  admission.wants_hits = plan_.options.evict == EvictPolicy::kLru;
  admission_ = std::make_unique<AdmissionPolicy>(admission, clock_);
  access_->Attach(*admission_, peers_);

  KVD_RETURN_IF_ERROR(MakeTransports(std::move(claim)));
  KVD_RETURN_IF_ERROR(StartPollers());
  // A client looks at the lifeline when it connects, so that is alive before the first of them can.
  KVD_RETURN_IF_ERROR(region_->StartLifeline());
  for (const auto& transport : transports_) KVD_RETURN_IF_ERROR(transport->Start(*admission_));
  if (admin_ != nullptr) {
    admin_->Serve({.statistics = [this] { return Statistics(); },
                   .sessions = [this] { return AdminSessions(); },
                   .slow_requests = [this] { return AdminSlowRequests(); }});
  }
  return absl::OkStatus();
}

// Before memory is taken, which may be long: who looks after kvd sees that it is under way.
absl::Status KvdServer::StartAdmin() {
  if (!plan_.admin.has_value()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<AdminEndpoint>> admin = AdminEndpoint::Start(*plan_.admin);
  if (!admin.ok()) {
    return absl::Status(admin.status().code(), absl::StrCat("--admin: ", admin.status().message()));
  }
  admin_ = *std::move(admin);
  log_(absl::StrCat("admin endpoint: ", admin_->Url()));
  return absl::OkStatus();
}

absl::Status KvdServer::MakeTransports(std::optional<SocketClaim> claim) {
  const KvdOptions& options = plan_.options;
  if (claim.has_value()) {
    ShmServerTransport::Options shm;
    shm.region_fd = region_->fd();
    shm.pollers = options.pollers;
    shm.socket_mode = options.shm_mode;
    KVD_ASSIGN_OR_RETURN(auto transport, ShmServerTransport::Create(*std::move(claim), shm));
    transports_.push_back(std::move(transport));
  }
  if (!options.listen.empty()) {
    VerbsServerOptions rdma;
    rdma.listen = options.listen;
    rdma.device = options.device;
    rdma.region_base = region_->base();
    rdma.region_bytes = region_->bytes();
    rdma.pollers = options.pollers;
    rdma.connect = options.connect;
    rdma.gid_index = options.gid_index;
    rdma.windows = options.rdma_windows;
    rdma.log = log_;
    KVD_ASSIGN_OR_RETURN(auto transport, VerbsServerTransport::Create(rdma));
    rdma_ = transport.get();
    transports_.push_back(std::move(transport));
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerEndpoint*> KvdServer::MakeEndpoint(size_t poller) {
  if (transports_.size() == 1) return &transports_.front()->endpoint(poller);
  std::vector<ServerEndpoint*> parts;
  for (const auto& transport : transports_) parts.push_back(&transport->endpoint(poller));
  KVD_ASSIGN_OR_RETURN(auto endpoint, CombinedEndpoint::Create(std::move(parts)));
  endpoints_.push_back(std::move(endpoint));
  return endpoints_.back().get();
}

std::string KvdServer::Describe() const {
  std::string text;
  for (const auto& transport : transports_)
    absl::StrAppend(&text, text.empty() ? "" : " and ", transport->Describe());
  return text;
}

absl::Status KvdServer::MakeRegion() {
  RegionOptions options;
  options.memory_bytes = plan_.options.memory_bytes;
  options.hugepages = plan_.options.hugepages;
  options.bucket_bytes = plan_.options.bucket_bytes;
  options.shard_count = plan_.options.pollers;
  options.numa_node = plan_.placement.node;
  options.numa_strict = plan_.placement.strict;
  MemoryProgress progress(options.memory_bytes, RealClock::Get(), log_,
                          [](const std::string& line) { SdNotify("STATUS=" + line); });
  options.progress = [&progress](uint64_t done, uint64_t total) { progress.Update(done, total); };
  options.cancelled = stop_asked_;
  KVD_ASSIGN_OR_RETURN(region_, Region::Create(options));
  const std::string& fallback = region_->page_fallback();
  log_(absl::StrCat(
      "region: ", FormatBytes(region_->bytes()), " in ", NameOf(region_->page_kind()), " pages",
      fallback.empty() ? "" : absl::StrCat(" (", fallback, "; --hugepages=off silences this)")));
  if (const std::string& note = region_->placement_note(); !note.empty()) {
    log_(absl::StrCat("region: ", note, ": READs of it are slower"));
  }
  return absl::OkStatus();
}

absl::Status KvdServer::MakeShards() {
  const ShardOptions options{.evict = plan_.options.evict == EvictPolicy::kLru};
  for (uint32_t i = 0; i < plan_.options.pollers; ++i) {
    KVD_ASSIGN_OR_RETURN(auto shard, Shard::Create(*region_, i, clock_, options));
    shards_.push_back(std::move(shard));
  }
  return absl::OkStatus();
}

absl::Status KvdServer::StartPollers() {
  PollerOptions options;
  options.client_known = [this](uint64_t client_id) { return admission_->KnowsClient(client_id); };
  options.mode = plan_.options.poll;
  options.spin_ns = int64_t{plan_.options.poll_spin_us} * 1000;
  options.limits.max_value_bytes = plan_.options.max_value_bytes;
  options.geometry = region_->geometry();
  options.pull_bytes_max = plan_.options.max_pull_bytes;
  options.idle_ns = int64_t{plan_.options.idle_timeout_s} * 1'000'000'000;
  options.statistics = [this] { return Statistics().Lines(); };
  options.why_expelled = [this](uint64_t session_id) {
    return admission_->WhyExpelled(session_id);
  };
  options.sessions_text = [this] { return access_->DescribeSessions(); };
  if (plan_.options.slow_log_ns != 0) options.slow_ns = plan_.options.slow_log_ns;
  options.slow = [this](SlowRequest request) { slow_log_.Add(std::move(request)); };
  options.slow_text = [this] { return DescribeSlowRequests(slow_log_.Newest()); };
  options.session_begins = [this](uint64_t session_id,
                                  std::shared_ptr<const SessionCounters> counters) {
    admission_->Attach(session_id, std::move(counters));
  };
  options.kick = [this](std::string_view who, uint64_t by) { return access_->Kick(who, by); };
  if (plan_.options.verbose) options.log = log_;
  for (uint32_t i = 0; i < plan_.options.pollers; ++i) {
    KVD_ASSIGN_OR_RETURN(ServerEndpoint* const endpoint, MakeEndpoint(i));
    KVD_ASSIGN_OR_RETURN(auto poller,
                         Poller::Create(options, i, *endpoint, *shards_[i], clock_, peers_));
    peers_.push_back(poller.get());
    pollers_.push_back(std::move(poller));
  }
  for (Poller* poller : peers_) poller->Start();
  for (size_t i = 0; i < plan_.placement.poller_cpus.size(); ++i) {
    const std::vector<int>& cpus = plan_.placement.poller_cpus[i];
    const absl::Status bound = peers_[i]->RunOn(cpus);
    if (bound.ok()) continue;
    log_(absl::StrCat("poller ", i, " runs on any processor, not on ", CpuListText(cpus), ": ",
                      bound.message()));
  }
  return absl::OkStatus();
}

KvdServer::~KvdServer() {
  if (admin_ != nullptr) admin_->StopServing();
  if (admission_ != nullptr) admission_->BeginShutdown();
  for (const auto& transport : transports_) transport->StopAccepting();
  for (Poller* poller : peers_) poller->RequestStop();
  for (Poller* poller : peers_) poller->Join();
  pollers_.clear();
  endpoints_.clear();
  transports_.clear();  // gives back sessions that never reached a poller, so before admission_
}

StatisticList KvdServer::Statistics() const {
  StatisticList list;
  AddIdentity(list);
  AddMemory(list);
  ShardStats shards;
  for (const auto& shard : shards_) shards = shards + shard->stats();
  AddShards(shards, list);
  AddSessions(list);
  std::vector<const RequestCounters*> counters;
  for (const Poller* poller : peers_) counters.push_back(&poller->counters());
  AddRequests(counters, list);
  std::vector<PollerProcessor> processors;
  for (const Poller* poller : peers_)
    processors.push_back({&poller->counters(), ReadQueuedNs(poller->thread_id())});
  AddStalls(processors, list);
  AddTimes(list);
  if (rdma_ != nullptr) AddRdma(list);
  AddProcess(list);
  return list;
}

}  // namespace kvd
