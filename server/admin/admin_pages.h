// What the admin endpoint answers: functions of a request, without sockets.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/admin/admin_source.h"
#include "server/admin/status_page.h"

namespace kvd {

struct AdminRequest {
  std::string_view method;
  std::string_view path;    // without a query
  std::string_view accept;  // of the header; empty: none
  std::string_view host;    // of the header; empty: none
};

struct AdminReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool allows_only_get = false;  // the header Allow has to say so
};

// Every path that there is.
//
//   /livez        200 as long as the process answers
//   /readyz       200 while kvd serves, otherwise 503 and why not
//   /metrics      Prometheus' text format, or OpenMetrics
//   /status.json  the statistics, the sessions and the slow requests
//   /             the same for people; /style.css and /live.js belong to it
//
// What shows something answers 503 as /readyz does while kvd does not serve; but /metrics 200, and
// that it does not. Thread-safe.
class AdminPages {
 public:
  struct Options {
    std::string reason = {};  // why kvd does not serve yet
    // Only programs of this host are meant: who asks for another host by name is refused. (A web
    // page can have its own name mean 127.0.0.1, and then read what is there: DNS rebinding.)
    bool only_this_host = true;
  };
  explicit AdminPages(Options options)
      : only_this_host_(options.only_this_host), reason_(std::move(options.reason)) {}

  // From now on kvd serves; what `source` needs lives until SetNotServing returns.
  void SetServing(AdminSource source);
  // From now on it does not. Waits for an answer that is being written; the source is not called
  // any more after that.
  void SetNotServing(std::string reason);

  AdminReply Answer(const AdminRequest& request);

 private:
  // With the lock held, and a source there.
  AdminReply AnswerServing(const AdminRequest& request);
  StatusRates RatesSince(const StatisticList& statistics);

  const bool only_this_host_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<AdminSource> source_;  // nullopt: not serving
  std::string reason_;
  StatisticList seen_;  // by an earlier look at the page, from which rates are reckoned
  std::optional<std::chrono::steady_clock::time_point> looked_at_;
  StatusRates rates_;
};

}  // namespace kvd
