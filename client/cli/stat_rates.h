// stat --rates: what a server holds, and what it did since the last look, a line each.
#pragma once

#include <cstdint>
#include <deque>
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
  uint64_t reported_gets = 0;
  uint64_t reported_reads = 0;
};

RateSample SampleOf(const KeyValueStore::Statistics& statistics, int64_t at_ns);

// What rates are counted from.
class RateSamples {
 public:
  // Clients report every 2 s, all that came since: over less than two of their reports what they
  // read would seem to come in bursts.
  static constexpr int64_t kReportsNs = 4'000'000'000;

  // Of another run of kvd than those before: forgets them.
  void Add(const RateSample& sample);

  bool has_rates() const { return samples_.size() > 1; }
  const RateSample& now() const { return samples_.back(); }
  // Whether there is one that is at least kReportsNs old.
  bool has_reported_rates() const { return now().at_ns - before_reports().at_ns >= kReportsNs; }
  // The one before, with has_rates(); and that old one, with has_reported_rates().
  const RateSample& before() const { return samples_[samples_.size() - 2]; }
  const RateSample& before_reports() const { return samples_.front(); }

 private:
  std::deque<RateSample> samples_;
};

// The columns' names, and a line of them. A rate that there is none of is "-", in JSON null.
std::string RateHeader();
std::string RateLine(OutputFormat format, const RateSamples& samples);

// Until Ctrl-C, or for --count lines.
ExitCode PrintRates(Invocation& run);

}  // namespace kvd::cli
