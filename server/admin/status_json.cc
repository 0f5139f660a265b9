#include "server/admin/status_json.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace kvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kExactMax = uint64_t{1} << 53;  // what every reader of JSON has as a number

Json Exactly(uint64_t number) {
  return number < kExactMax ? Json(number) : Json(std::to_string(number));
}

Json ValueOf(const Statistic& row) {
  return row.kind == StatisticKind::kText ? Json(row.text) : Exactly(row.number);
}

}  // namespace

std::string UtcText(int64_t unix_us) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMicros(unix_us), absl::UTCTimeZone());
}

std::string StatusJson(const StatisticList& statistics, const std::vector<AdminSession>& sessions,
                       const std::vector<AdminSlowRequest>& slow_requests) {
  Json values = Json::object();
  for (const Statistic& row : statistics.rows()) {
    if (!row.name.empty()) values[std::string(row.name)] = ValueOf(row);
  }
  Json rows = Json::array();
  for (const AdminSession& session : sessions) {
    Json row{{"id", session.id},
             {"name", session.name},
             {"transport", session.transport},
             {"address", session.address},
             {"key", session.key_name.empty() ? Json() : Json(session.key_name)},
             {"role", session.role},
             {"since", UtcText(session.since_unix_us)},
             {"credits", session.credits},
             {"requests", session.requests},
             {"writes", session.writes},
             {"received_bytes", session.received_bytes},
             {"sent_bytes", session.sent_bytes}};
    const auto reported = std::bit_cast<ReportedWords>(session.reported);
    for (size_t i = 0; i < kReportedCounts; ++i) {
      row[std::string(kReportedNames[i])] = Exactly(reported[i]);
    }
    row["reported_disbelieved"] = session.disbelieved_reports;
    rows.push_back(std::move(row));
  }
  Json slow = Json::array();
  for (const AdminSlowRequest& request : slow_requests) {
    slow.push_back({{"at", UtcText(request.at_unix_us)},
                    {"at_unix_us", request.at_unix_us},
                    {"requests", request.requests},
                    {"operation", request.operation},
                    {"session", request.session_id},
                    {"name", request.name},
                    {"key_bytes", request.key_bytes},
                    {"value_bytes", request.value_bytes},
                    {"us", request.total_us},
                    {"phase", request.phase},
                    {"waiting_us", request.waiting_us},
                    {"pulling_us", request.pulling_us},
                    {"evicting_us", request.evicting_us},
                    {"executing_us", request.executing_us},
                    {"stalled_us", request.stalled_us}});
  }
  const Json status{{"statistics", std::move(values)},
                    {"sessions", std::move(rows)},
                    {"slow_requests", std::move(slow)}};
  // In ASCII: what names hold does nothing to a terminal that it is printed on.
  return status.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvd
