// The status page for people: HTML that a browser shows without running anything, and that loads
// nothing but its own style and script.
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

// Refreshes itself every few seconds, with JavaScript and without it.
std::string StatusPage(const StatisticList& statistics, const std::vector<AdminSession>& sessions,
                       const std::vector<AdminSlowRequest>& slow_requests,
                       const StatusRates& rates);

// The page instead of it while kvd does not serve.
std::string NotReadyPage(std::string_view reason);

// /style.css, and /live.js, by which a browser that runs it shows what is new without loading all
// (status_assets.cc).
std::string_view StatusStyle();
std::string_view StatusScript();

}  // namespace kvd
