// stat --rates: what a server holds, and what it did since the last look, a line each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/invocation.h"
#include "client/cli/store.h"

namespace kvd::cli {

// What one look at the statistics says.
struct RateSample {
  int64_t at_ns = 0;        // monotonic
  std::string incarnation;  // another one: kvd was started anew
  uint64_t items = 0;
  uint64_t used_bytes = 0;  // of the region
  uint64_t sessions = 0;
  uint64_t requests = 0;  // of every kind, so far
  uint64_t puts = 0;
  uint64_t gets_by_request = 0;
  uint64_t reported_reads = 0;
};

RateSample SampleOf(const KeyValueStore::Statistics& statistics, int64_t at_ns);

// The columns' names, and a line of them. `before`: null, or the sample that rates are counted
// from; there are none ("-", in JSON null) without it, and from one of another run of kvd.
std::string RateHeader();
std::string RateLine(OutputFormat format, const RateSample& now, const RateSample* before);

// Until Ctrl-C, or for --count lines.
ExitCode PrintRates(Invocation& run);

}  // namespace kvd::cli
