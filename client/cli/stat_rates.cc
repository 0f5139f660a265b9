#include "client/cli/stat_rates.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/failure.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr std::chrono::nanoseconds kIntervalDefault = std::chrono::seconds(1);
constexpr uint64_t kLinesPerHeader = 20;

// A rate for people: whole where it is large.
std::string PerSecond(uint64_t now, uint64_t before, double seconds) {
  const double rate = static_cast<double>(now - before) / seconds;
  return rate < 10 ? absl::StrFormat("%.1f", rate) : absl::StrFormat("%.0f", rate);
}

// Counters of one run of kvd never fall.
bool FollowsOn(const RateSample& now, const RateSample& before) {
  return now.incarnation == before.incarnation && now.at_ns > before.at_ns &&
         now.requests >= before.requests && now.puts >= before.puts &&
         now.gets_by_request >= before.gets_by_request &&
         now.reported_gets >= before.reported_gets && now.reported_reads >= before.reported_reads;
}

// Reports what is wrong, but of an outage the beginning only.
class Looks {
 public:
  explicit Looks(Invocation& run) : run_(run) {}

  // Not ok: reported, with exit().
  absl::StatusOr<RateSample> Look() {
    absl::StatusOr<RateSample> sample = Ask();
    run_.EndAdministration();  // not to be kept while nothing is asked
    if (sample.ok()) {
      away_ = false;
    } else if (!std::exchange(away_, true)) {
      exit_ = run_.Fail("", ConnectFailure(run_.flags().Text("server"), sample.status()));
    }
    return sample;
  }

  ExitCode exit() const { return exit_; }

 private:
  absl::StatusOr<RateSample> Ask() {
    KVD_ASSIGN_OR_RETURN(KeyValueStore * store, run_.TryStore(run_.flags().Text("server")));
    KVD_ASSIGN_OR_RETURN(const KeyValueStore::Statistics statistics, store->Stats());
    return SampleOf(statistics, run_.console().clock.NowMonotonicNs());
  }

  Invocation& run_;
  bool away_ = false;
  ExitCode exit_ = ExitCode::kDone;
};

}  // namespace

RateSample SampleOf(const KeyValueStore::Statistics& statistics, int64_t at_ns) {
  RateSample sample;
  sample.at_ns = at_ns;
  uint64_t memory = 0;
  uint64_t free = 0;
  for (const auto& [name, value] : statistics) {
    uint64_t number = 0;
    if (name == "incarnation") sample.incarnation = value;
    if (!absl::SimpleAtoi(value, &number)) continue;
    if (name.starts_with("requests_") && name != "requests_forwarded") sample.requests += number;
    if (name == "requests_put") sample.puts = number;
    if (name == "requests_get") sample.gets_by_request = number;
    if (name == "reported_gets") sample.reported_gets = number;
    if (name == "reported_reads") sample.reported_reads = number;
    if (name == "items") sample.items = number;
    if (name == "sessions") sample.sessions = number;
    if (name == "memory_bytes") memory = number;
    if (name == "free_bytes") free = number;
  }
  sample.used_bytes = memory > free ? memory - free : 0;
  return sample;
}

void RateSamples::Add(const RateSample& sample) {
  if (!samples_.empty() && !FollowsOn(sample, samples_.back())) samples_.clear();
  samples_.push_back(sample);
  while (samples_.size() > 2 && sample.at_ns - samples_[1].at_ns >= kReportsNs)
    samples_.pop_front();
}

std::string RateHeader() {
  return absl::StrFormat("%12s %10s %9s %12s %10s %10s %12s %12s\n", "items", "memory", "sessions",
                         "requests/s", "puts/s", "asked/s", "gets/s", "reads/s");
}

std::string RateLine(OutputFormat format, const RateSamples& samples) {
  const bool json = format == OutputFormat::kJson;
  const RateSample& now = samples.now();
  const auto rate_since = [&](const RateSample& before, uint64_t RateSample::*of) {
    return PerSecond(now.*of, before.*of, static_cast<double>(now.at_ns - before.at_ns) / 1e9);
  };
  const std::string none = json ? "null" : "-";
  const auto rate = [&](uint64_t RateSample::*of) {
    return samples.has_rates() ? rate_since(samples.before(), of) : none;
  };
  const auto reported = [&](uint64_t RateSample::*of) {
    return samples.has_reported_rates() ? rate_since(samples.before_reports(), of) : none;
  };
  if (json) {
    return absl::StrCat("{\"items\":", now.items, ",\"used_bytes\":", now.used_bytes,
                        ",\"sessions\":", now.sessions, ",\"requests\":", now.requests,
                        ",\"requests_per_second\":", rate(&RateSample::requests),
                        ",\"puts_per_second\":", rate(&RateSample::puts),
                        ",\"gets_by_request_per_second\":", rate(&RateSample::gets_by_request),
                        ",\"reported_gets_per_second\":", reported(&RateSample::reported_gets),
                        ",\"reported_reads_per_second\":", reported(&RateSample::reported_reads),
                        "}\n");
  }
  return absl::StrFormat("%12d %10s %9d %12s %10s %10s %12s %12s\n", now.items,
                         FormatBytes(now.used_bytes), now.sessions, rate(&RateSample::requests),
                         rate(&RateSample::puts), rate(&RateSample::gets_by_request),
                         reported(&RateSample::reported_gets),
                         reported(&RateSample::reported_reads));
}

ExitCode PrintRates(Invocation& run) {
  const FlagValues& flags = run.flags();
  const uint64_t count = flags.Count("count");
  const std::chrono::nanoseconds interval =
      flags.IsSet("interval") ? flags.Duration("interval") : kIntervalDefault;
  Console& console = run.console();
  Looks looks(run);
  RateSamples samples;
  uint64_t printed = 0;
  while (true) {
    if (const absl::StatusOr<RateSample> now = looks.Look(); now.ok()) {
      if (run.format() != OutputFormat::kJson && printed % kLinesPerHeader == 0) {
        console.out.Write(RateHeader());
      }
      samples.Add(*now);
      console.out.Write(RateLine(run.format(), samples));
      console.out.Flush();
      if (++printed == count || !console.out.ok()) return ExitCode::kDone;
    } else if (printed == 0) {
      return looks.exit();
    }
    if (!console.pause(interval)) return ExitCode::kInterrupted;
  }
}

}  // namespace kvd::cli
