// A whole kvd: region, shards, transport, pollers, put together and taken apart in the right order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/statistic_list.h"
#include "common/transport/combined_endpoint.h"
#include "common/transport/shm/shm_server_transport.h"
#include "common/transport/verbs/verbs_server_transport.h"
#include "server/admin/admin_endpoint.h"
#include "server/kvd_access.h"
#include "server/kvd_plan.h"
#include "server/poller/poller.h"
#include "server/poller/slow_log.h"
#include "server/session/admission_policy.h"
#include "server/slewed_clock.h"
#include "server/store/region.h"
#include "server/store/shard.h"

namespace kvd {

class KvdServer {
 public:
  // One line for the log about what happens.
  using Log = std::function<void(const std::string&)>;
  // Whether to give up what takes long. Any thread; does not block.
  using StopAsked = std::function<bool()>;

  // Claims the socket, gets the memory, starts the pollers and then accepts clients. Blocks for as
  // long as the kernel takes to give the memory, and to take that of a dead kvd back, unless
  // `stop_asked` says true: Cancelled. Any other error is one line with a remedy; nothing is left
  // behind then.
  static absl::StatusOr<std::unique_ptr<KvdServer>> Start(const KvdPlan& plan, Log log,
                                                          StopAsked stop_asked);

  // Stops accepting, answers what has come, ends all sessions, removes the socket. Takes some
  // seconds at most.
  ~KvdServer();

  // Where clients find it.
  std::string Describe() const;
  const Region& region() const { return *region_; }

  // Reads the key file anew, as SIGHUP asks. Blocks for the file. One thread at a time.
  void Reload() { access_->Reload(); }

  // What kvcli stat and the admin endpoint show. Any thread, once Start has returned.
  StatisticList Statistics() const;

 private:
  KvdServer(const KvdPlan& plan, Log log, StopAsked stop_asked);

  absl::Status Start();
  absl::Status StartAdmin();
  absl::Status MakeRegion();
  absl::Status MakeShards();
  absl::Status MakeTransports(std::optional<SocketClaim> claim);
  absl::StatusOr<ServerEndpoint*> MakeEndpoint(size_t poller);
  absl::Status StartPollers();

  // Any thread (kvd_statistics.cc).
  std::vector<AdminSession> AdminSessions() const;
  std::vector<AdminSlowRequest> AdminSlowRequests() const;
  // Parts of Statistics.
  void AddIdentity(StatisticList& list) const;
  void AddMemory(StatisticList& list) const;
  void AddSessions(StatisticList& list) const;
  void AddTimes(StatisticList& list) const;
  void AddRdma(StatisticList& list) const;

  const KvdPlan plan_;
  const Log log_;
  const StopAsked stop_asked_;
  const SlewedClock clock_{RealClock::Get()};
  int64_t started_ns_ = 0;
  std::unique_ptr<AdminEndpoint> admin_;  // null: none
  std::unique_ptr<Region> region_;
  std::vector<std::unique_ptr<Shard>> shards_;
  SlowLog slow_log_;
  std::unique_ptr<KvdAccess> access_;
  std::unique_ptr<AdmissionPolicy> admission_;
  std::vector<std::unique_ptr<ServerTransport>> transports_;
  VerbsServerTransport* rdma_ = nullptr;  // of transports_, if it is one
  std::vector<std::unique_ptr<CombinedEndpoint>>
      endpoints_;  // by poller, where there are several transports
  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<Poller*> peers_;
};

}  // namespace kvd
