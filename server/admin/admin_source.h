// What the admin endpoint shows, given to it by whoever knows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/statistic_list.h"
#include "common/layout/reported_counts.h"

namespace kvd {

struct AdminSession {
  uint64_t id = 0;
  std::string name;       // as the client calls itself: whatever bytes it likes
  std::string transport;  // "shm", "rdma"
  std::string address;
  std::string key_name;  // empty: none
  std::string role;
  int64_t since_unix_us = 0;
  uint32_t credits = 0;  // requests that it may have under way
  uint64_t requests = 0;
  uint64_t writes = 0;  // of these, that ask to change something
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  ReportedCounts reported = {};  // what it says that it read
  uint64_t disbelieved_reports = 0;
};

// A request that took long, and how many were late with it.
struct AdminSlowRequest {
  int64_t at_unix_us = 0;
  uint64_t requests = 1;  // itself included
  std::string operation;
  uint64_t session_id = 0;  // 0: it has gone
  std::string name;         // of the client, as AdminSession's
  uint32_t key_bytes = 0;
  uint64_t value_bytes = 0;
  std::string phase;  // that took longest: "waiting", "pulling", "evicting", "executing", "stalled"
  int64_t total_us = 0;
  int64_t waiting_us = 0;
  int64_t pulling_us = 0;
  int64_t evicting_us = 0;
  int64_t executing_us = 0;
  int64_t stalled_us = 0;
};

// All are called on the endpoint's thread, must not block for long and not disturb who serves
// requests.
struct AdminSource {
  std::function<StatisticList()> statistics;
  std::function<std::vector<AdminSession>()> sessions;
  std::function<std::vector<AdminSlowRequest>()> slow_requests = [] {
    return std::vector<AdminSlowRequest>();
  };
};

}  // namespace kvd
