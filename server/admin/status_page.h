// The status page for people: HTML that a browser shows without loading or running anything but
// its own style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/admin/admin_source.h"

namespace kvd {

// What changed since an earlier look.
struct StatusRates {
  double seconds = 0;  // 0: there was none
  double requests = 0;
  double processor_seconds = 0;
};
StatusRates RatesBetween(const StatisticList& before, const StatisticList& now, double seconds);

// Refreshes itself every few seconds.
std::string StatusPage(const StatisticList& statistics, const std::vector<AdminSession>& sessions,
                       const StatusRates& rates);

// The page instead of it while kvd does not serve.
std::string NotReadyPage(std::string_view reason);

// /style.css.
std::string_view StatusStyle();

}  // namespace kvd
