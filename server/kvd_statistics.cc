// What of the statistics belongs to the whole of kvd.
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/admission/role.h"
#include "common/base/build_info.h"
#include "server/kvd_server.h"
#include "server/operations/port_counters.h"

namespace kvd {

void KvdServer::AddIdentity(StatisticList& list) const {
  const auto build = [](std::string_view label) {
    return Metric{.name = "kvd_build_info", .help = "Which kvd this is.", .label = label};
  };
  list.Text("version", Version(), build("version"));
  list.Text("commit", Commit(), build("commit"));
  list.Gauge("pid", static_cast<uint64_t>(getpid()));
  list.Gauge("uptime_seconds",
             static_cast<uint64_t>(clock_.NowMonotonicNs() - started_ns_) / 1'000'000'000,
             {.help = "Time since kvd started."});
  list.Gauge("incarnation", region_->geometry().incarnation);
  list.Text("transports", rdma_ == nullptr ? "shm" : transports_.size() == 1 ? "rdma" : "shm,rdma");
}

void KvdServer::AddMemory(StatisticList& list) const {
  const KvdOptions& options = plan_.options;
  const auto region = [](std::string_view label) {
    return Metric{
        .name = "kvd_region_info", .help = "Of which pages the region is.", .label = label};
  };
  const auto config = [](std::string_view label) {
    return Metric{.name = "kvd_config_info", .help = "How kvd was started.", .label = label};
  };
  const auto use = [](std::string_view value) {
    return Metric{.name = "kvd_region_bytes", .label = "use", .label_value = value};
  };
  list.Gauge("memory_bytes", region_->bytes(),
             {.name = "kvd_region_size_bytes", .help = "The region: --memory."});
  list.Text("page_kind", NameOf(region_->page_kind()), region("page_kind"));
  const std::string& fallback = region_->page_fallback();
  list.Text("page_fallback", fallback.empty() ? "none" : fallback);
  const int node = plan_.placement.node;
  list.Text("numa_node", node < 0 ? "any" : absl::StrCat(node));
  list.Gauge("free_bytes", region_->free_bytes(), use("free"));
  list.Gauge("", ToBytes(region_->pages().ZoneBegin(0)), use("fixed"));
  list.Gauge("largest_free_run_bytes", region_->pages().longest_free_run_bytes(),
             {.help = "The longest run of free memory in the region: a value takes one run."});
  list.Gauge("max_value_bytes", options.max_value_bytes,
             {.name = "kvd_value_max_bytes", .help = "The longest value that is taken."});
  list.Gauge("bucket_bytes", options.bucket_bytes, {.help = "Size of a bucket of the index."});
  list.Text("evict", NameOf(options.evict), config("evict"));
  list.Gauge("pollers", options.pollers, {.help = "Threads that serve requests."});
  list.Text("poll_mode", NameOf(options.poll), config("poll_mode"));
}

void KvdServer::AddSessions(StatisticList& list) const {
  const auto of = [&](std::string_view transport) {
    list.Gauge("", admission_->sessions_over(transport),
               {.name = "kvd_sessions",
                .help = "Sessions of clients, by transport.",
                .label = "transport",
                .label_value = transport});
  };
  list.Gauge("sessions", admission_->sessions());
  of("shm");
  of("rdma");
  list.Counter("sessions_total", admission_->sessions_total(),
               {.name = "kvd_sessions_admitted_total", .help = "Sessions that began."});
  list.Gauge("sessions_max", plan_.options.max_clients,
             {.help = "Sessions that there may be at once."});
  list.Counter("refused", admission_->refused(),
               {.name = "kvd_sessions_refused_total",
                .help = "Clients that were refused, for whatever reason."});
  list.Counter("audit_lines_lost", access_->audit() == nullptr ? 0 : access_->audit()->lost(),
               {.help = "Lines that --audit could not take."});
}

void KvdServer::AddTimes(StatisticList& list) const {
  std::vector<const RequestTimes*> times;
  for (const Poller* poller : peers_) times.push_back(&poller->times());
  AddRequestTimes(times, list);
  list.Counter("slow_requests", slow_log_.total(),
               {.help = "Requests that took as long as --slow_log says, or longer."});
}

void KvdServer::AddRdma(StatisticList& list) const {
  const StatisticList facts = rdma_->Facts();
  list.Append(facts);
  const Statistic* const device = facts.Find("rdma_device");
  if (device != nullptr) AddPortCounters(device->text, facts.NumberOf("rdma_port"), list);
}

std::vector<AdminSlowRequest> KvdServer::AdminSlowRequests() const {
  std::vector<AdminSlowRequest> rows;
  for (SlowRequest& request : slow_log_.Newest()) {
    const RequestPhases& phases = request.phases;
    rows.push_back({.at_unix_us = request.at_unix_us,
                    .requests = request.requests,
                    .operation = std::string(request.operation),
                    .session_id = request.session_id,
                    .name = std::move(request.name),
                    .key_bytes = request.key_bytes,
                    .value_bytes = request.value_bytes,
                    .phase = std::string(phases.Longest()),
                    .total_us = phases.total_ns() / 1000,
                    .waiting_us = phases.waiting_ns / 1000,
                    .pulling_us = phases.pulling_ns / 1000,
                    .evicting_us = phases.evicting_ns / 1000,
                    .executing_us = phases.executing_ns / 1000,
                    .stalled_us = phases.stalled_ns / 1000});
  }
  return rows;
}

std::vector<AdminSession> KvdServer::AdminSessions() const {
  std::vector<AdminSession> rows;
  const SessionCounters nothing;
  for (SessionFacts& session : admission_->Sessions()) {
    const SessionCounters& counters = session.counters == nullptr ? nothing : *session.counters;
    rows.push_back({.id = session.session_id,
                    .name = std::move(session.name),
                    .transport = std::move(session.peer.transport),
                    .address = std::move(session.peer.address),
                    .key_name = session.peer.key == nullptr ? "" : session.peer.key->name,
                    .role = NameOf(session.role),
                    .since_unix_us = session.since_unix_us,
                    .credits = session.credits,
                    .requests = counters.requests.get(),
                    .writes = counters.writes.get(),
                    .received_bytes = counters.received_bytes.get(),
                    .sent_bytes = counters.sent_bytes.get(),
                    .reported = counters.reported(),
                    .disbelieved_reports = counters.disbelieved_reports()});
  }
  return rows;
}

}  // namespace kvd
