// What the admin endpoint shows, given to it by whoever knows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/statistic_list.h"

namespace kvd {

struct AdminSession {
  uint64_t id = 0;
  std::string name;       // as the client calls itself: whatever bytes it likes
  std::string transport;  // "shm", "rdma"
  std::string address;
  std::string key_name;  // empty: none
  std::string role;
  int64_t since_unix_us = 0;
};

// Both are called on the endpoint's thread, must not block for long and not disturb who serves
// requests.
struct AdminSource {
  std::function<StatisticList()> statistics;
  std::function<std::vector<AdminSession>()> sessions;
};

}  // namespace kvd
