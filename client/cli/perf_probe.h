// doctor --perf: measures GETs as they are, and beside them what they are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/doctor_report.h"
#include "client/cli/perf_facts.h"
#include "client/cli/store.h"
#include "common/base/clock.h"

namespace kvd::cli {

struct PerfOptions {
  // Reads what is there. Where `writes`, puts items of its own under `key_prefix`, and deletes
  // them.
  bool writes = false;
  std::string key_prefix;
  uint64_t seed = 0;
  std::function<bool()> interrupted;
  // Connects anew, with a client that remembers so many locations; what came before is gone then.
  std::function<absl::StatusOr<KeyValueStore*>(uint32_t location_cache_entries)> connect;
};

// Fills what `facts` has of GETs, requests and the server. An error: the server's, after which the
// rest is not known. Of keys that it wrote and that may be left, `left_behind` tells the last
// error.
struct PerfOutcome {
  absl::Status status;
  absl::Status left_behind;
};
PerfOutcome MeasurePerf(const PerfOptions& options, const Clock& clock, PerfFacts& facts);

// What was measured, a line for each kind of GET, and then the causes.
void ReportPerf(const PerfFacts& facts, const PerfOptions& options, DoctorReport& report);

}  // namespace kvd::cli
