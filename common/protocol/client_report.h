// What a HITS request says, taken apart without trusting it.
#pragma once

#include <string_view>

#include "common/layout/reported_counts.h"
#include "common/protocol/request_codec.h"

namespace kvd {

struct ClientReport {
  ReportedCounts counts{};  // zero: not told
  std::string_view hashes;  // whole ones, 8 bytes each
};

// Of a HITS that DecodeRequest has accepted; `hashes` points into its value. Counts that this
// version does not know are left out. On an error `report` is empty.
FrameError DecodeReport(const RequestView& request, ClientReport& report);

}  // namespace kvd
