#include "server/admin/admin_pages.h"

#include <arpa/inet.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/string_view.h"
#include "server/admin/metrics_text.h"
#include "server/admin/status_json.h"

namespace kvd {
namespace {

// Where there is nothing to show while kvd does not serve.
constexpr std::string_view kPathsServing[] = {"/readyz", "/metrics", "/status.json", "/"};

constexpr char kHtml[] = "text/html; charset=utf-8";

// Rates over less than this say little.
constexpr std::chrono::milliseconds kRateTimeMin{1000};

bool NeedsServing(std::string_view path) {
  return std::find(std::begin(kPathsServing), std::end(kPathsServing), path) !=
         std::end(kPathsServing);
}

bool IsAddress(int family, std::string_view text) {
  in6_addr bytes{};
  return inet_pton(family, std::string(text).c_str(), &bytes) == 1;
}

// "localhost", or an address, with or without a port: nothing that a name server could answer for.
// Or nothing, as before HTTP/1.1.
bool IsThisHost(std::string_view host) {
  if (host.empty()) return true;
  const bool in_brackets = host.front() == '[';
  const size_t end = in_brackets ? host.find(']') : host.find(':');
  if (in_brackets && end == host.npos) return false;
  const std::string_view name = in_brackets ? host.substr(1, end - 1) : host.substr(0, end);
  std::string_view port = end == host.npos ? std::string_view() : host.substr(end);
  if (in_brackets) port.remove_prefix(1);
  if (!port.empty() &&
      (port.front() != ':' || port.find_first_not_of("0123456789", 1) != port.npos))
    return false;
  if (in_brackets) return IsAddress(AF_INET6, name);
  return absl::EqualsIgnoreCase(ToAbsl(name), "localhost") || IsAddress(AF_INET, name);
}

// /metrics also answers while kvd does not serve, with this alone: a monitor tells one that has not
// begun to serve from one that is not there.
void AddReady(bool ready, StatisticList& list) {
  list.Gauge("", ready ? 1 : 0,
             {.name = "kvd_ready", .help = "1 while kvd serves; 0 while it starts or ends."});
}

AdminReply Metrics(const StatisticList& statistics, const AdminRequest& request) {
  const MetricsFormat format = MetricsFormatFor(request.accept);
  return {.content_type = std::string(ContentTypeOf(format)),
          .body = MetricsText(statistics, format)};
}

AdminReply PlainText(int status, std::string_view line) {
  AdminReply reply;
  reply.status = status;
  reply.body = std::string(line) + "\n";
  return reply;
}

}  // namespace

void AdminPages::SetServing(AdminSource source) {
  const std::lock_guard lock(mutex_);
  source_ = std::move(source);
}

void AdminPages::SetNotServing(std::string reason) {
  const std::lock_guard lock(mutex_);
  source_.reset();
  reason_ = std::move(reason);
}

AdminReply AdminPages::Answer(const AdminRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    AdminReply reply = PlainText(405, "only GET and HEAD are answered here");
    reply.allows_only_get = true;
    return reply;
  }
  if (only_this_host_ && !IsThisHost(request.host)) {
    return PlainText(421, "ask for localhost or for an address: this endpoint is for its own host");
  }
  if (request.path == "/livez") return PlainText(200, "ok");
  if (request.path == "/style.css") {
    return {.content_type = "text/css; charset=utf-8", .body = std::string(StatusStyle())};
  }
  if (request.path == "/live.js") {
    return {.content_type = "text/javascript; charset=utf-8", .body = std::string(StatusScript())};
  }
  if (!NeedsServing(request.path)) {
    return PlainText(404,
                     "there is no such page; there are /, /status.json, /metrics, /readyz "
                     "and /livez");
  }
  const std::lock_guard lock(mutex_);
  if (source_.has_value()) return AnswerServing(request);
  if (request.path == "/metrics") {
    StatisticList statistics;
    AddReady(false, statistics);
    return Metrics(statistics, request);
  }
  if (request.path == "/")
    return {.status = 503, .content_type = kHtml, .body = NotReadyPage(reason_)};
  return PlainText(503, "not ready: " + reason_);
}

AdminReply AdminPages::AnswerServing(const AdminRequest& request) {
  if (request.path == "/readyz") return PlainText(200, "ok");
  StatisticList statistics = source_->statistics();
  if (request.path == "/metrics") {
    AddReady(true, statistics);
    return Metrics(statistics, request);
  }
  const std::vector<AdminSession> sessions = source_->sessions();
  if (request.path == "/status.json") {
    return {.content_type = "application/json",
            .body = StatusJson(statistics, sessions, source_->slow_requests())};
  }
  return {
      .content_type = kHtml,
      .body = StatusPage(statistics, sessions, source_->slow_requests(), RatesSince(statistics))};
}

// Since the last look that is long enough ago; remembers this one if so.
StatusRates AdminPages::RatesSince(const StatisticList& statistics) {
  const auto now = std::chrono::steady_clock::now();
  if (looked_at_.has_value() && now - *looked_at_ < kRateTimeMin) return rates_;
  if (looked_at_.has_value()) {
    rates_ =
        RatesBetween(seen_, statistics, std::chrono::duration<double>(now - *looked_at_).count());
  }
  looked_at_ = now;
  seen_ = statistics;
  return rates_;
}

}  // namespace kvd
