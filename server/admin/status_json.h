// The statistics and the sessions as JSON.
#pragma once

#include <string>
#include <vector>

#include "server/admin/admin_source.h"

namespace kvd {

// {"statistics": {name: number or text, ...}, "sessions": [{...}, ...], "slow_requests": [{...},
// ...]}. Numbers from 2^53 on are
// strings, as in `kvcli stat -w json`; bytes of a client's that are no UTF-8 become U+FFFD.
std::string StatusJson(const StatisticList& statistics, const std::vector<AdminSession>& sessions,
                       const std::vector<AdminSlowRequest>& slow_requests);

// "2026-11-30T15:04:05Z"
std::string UtcText(int64_t unix_us);

}  // namespace kvd
