// latency: how long a GET's READ and a request take, sampled as redis-cli samples PINGs.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "common/base/latency_histogram.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

constexpr std::chrono::nanoseconds kBetweenSamples = std::chrono::milliseconds(10);
constexpr std::chrono::nanoseconds kLineInterval = std::chrono::seconds(15);
constexpr std::chrono::nanoseconds kIntoPipe = std::chrono::seconds(1);
constexpr int64_t kDrawIntervalNs = 100'000'000;

constexpr Flag kLatencyFlags[] = {
    {"lines", '\0', FlagKind::kSwitch, "", "false",
     "a line for each interval instead of one that is updated", false},
    {"interval", 'i', FlagKind::kDuration, "TIME", "",
     "of a line with --lines, 15s without it; otherwise how long to sample where standard "
     "output is no terminal, 1s without it",
     false},
    {"count", 'c', FlagKind::kCount, "N", "0",
     "end after N samples, or with --lines N lines; 0: without an end", false},
    {"key", '\0', FlagKind::kText, "KEY", "", "the item to read; without it, any that is there",
     false},
};

struct Samples {
  LatencyHistogram get;
  LatencyHistogram request;

  void Clear() {
    get.Clear();
    request.Clear();
  }
};

std::string Us(double ns) { return absl::StrFormat("%.1f", ns / 1e3); }

std::string MinAvgMax(const LatencyHistogram& times) {
  return absl::StrCat(Us(static_cast<double>(times.min())), "/", Us(times.Mean()), "/",
                      Us(static_cast<double>(times.max())));
}

std::string JsonTimes(const LatencyHistogram& times) {
  return absl::StrCat("{\"min\":", Us(static_cast<double>(times.min())),
                      ",\"avg\":", Us(times.Mean()),
                      ",\"p99\":", Us(static_cast<double>(times.Percentile(0.99))),
                      ",\"max\":", Us(static_cast<double>(times.max())), "}");
}

std::vector<std::string> Row(const char* what, const LatencyHistogram& times) {
  return {what,
          absl::StrCat(times.count()),
          Us(static_cast<double>(times.min())),
          Us(times.Mean()),
          Us(static_cast<double>(times.Percentile(0.99))),
          Us(static_cast<double>(times.max()))};
}

std::string Format(OutputFormat format, const Samples& samples) {
  switch (format) {
    case OutputFormat::kJson:
      return absl::StrCat("{\"samples\":", samples.get.count(),
                          ",\"get_us\":", JsonTimes(samples.get),
                          ",\"request_us\":", JsonTimes(samples.request), "}\n");
    case OutputFormat::kTable:
      return FormatTable({"", "SAMPLES", "MIN US", "AVG US", "P99 US", "MAX US"},
                         {Row("GET", samples.get), Row("request", samples.request)});
    case OutputFormat::kSimple:
      break;
  }
  return absl::StrCat("min/avg/max us: GET ", MinAvgMax(samples.get), "  request ",
                      MinAvgMax(samples.request), "  (", samples.get.count(),
                      samples.get.count() == 1 ? " sample)\n" : " samples)\n");
}

class Probe {
 public:
  Probe(Invocation& run, KeyValueStore& store) : run_(run), store_(store) {}

  // Which item is read.
  absl::Status ChooseKey() {
    if (run_.flags().IsSet("key")) {
      if (!run_.BytesOfArgument(run_.flags().Text("key"), key_)) {
        return absl::InvalidArgumentError("");  // has been reported
      }
      return absl::OkStatus();
    }
    bool found = false;
    const auto take = [&](std::string_view key, std::string_view, const ItemInfo&) {
      key_ = key;
      found = true;
      return false;
    };
    KVD_RETURN_IF_ERROR(store_.Scan(take, {}).status());
    if (found) return absl::OkStatus();
    key_ = "kvcli latency";  // which nobody has, as nobody has anything
    run_.Note("", "the store is empty: what is read is that a key is not there");
    return absl::OkStatus();
  }

  // Both, once each.
  absl::Status Sample(Samples& samples) {
    const Clock& clock = run_.console().clock;
    const int64_t start_ns = clock.NowMonotonicNs();
    KVD_RETURN_IF_ERROR(store_.Exists(key_).status());
    const int64_t read_ns = clock.NowMonotonicNs();
    KVD_ASSIGN_OR_RETURN(const std::chrono::nanoseconds trip, store_.Ping());
    samples.get.Add(read_ns - start_ns);
    samples.request.Add(trip.count());
    return absl::OkStatus();
  }

 private:
  Invocation& run_;
  KeyValueStore& store_;
  std::string key_;
};

// The line that is updated while a terminal shows it.
class LiveLine {
 public:
  explicit LiveLine(Console& console) : console_(console) {}

  void Update(const Samples& samples) {
    const int64_t now_ns = console_.clock.NowMonotonicNs();
    if (!console_.out_is_terminal || now_ns < next_draw_ns_) return;
    next_draw_ns_ = now_ns + kDrawIntervalNs;
    std::string line = Format(OutputFormat::kSimple, samples);
    line.pop_back();
    // One column less than there are: the cursor must not wrap.
    console_.out.Write(absl::StrCat("\r\x1b[K", line.substr(0, console_.columns - 1)));
    console_.out.Flush();
    shown_ = true;
  }

  void Clear() {
    if (std::exchange(shown_, false)) console_.out.Write("\r\x1b[K");
  }

 private:
  Console& console_;
  int64_t next_draw_ns_ = 0;
  bool shown_ = false;
};

ExitCode FailOf(Invocation& run, const absl::Status& status) {
  return absl::IsInvalidArgument(status) && status.message().empty() ? ExitCode::kUsage
                                                                     : run.FailOfStore("", status);
}

struct Plan {
  bool lines = false;
  bool ends = false;  // by itself, after an interval
  std::chrono::nanoseconds interval{0};
  uint64_t count = 0;
};

Plan PlanOf(Invocation& run) {
  const FlagValues& flags = run.flags();
  Plan plan;
  plan.lines = flags.Switch("lines");
  plan.count = flags.Count("count");
  plan.ends = !plan.lines && plan.count == 0 && !run.console().out_is_terminal;
  plan.interval = flags.IsSet("interval") ? flags.Duration("interval")
                  : plan.lines            ? kLineInterval
                                          : kIntoPipe;
  return plan;
}

ExitCode RunLatency(Invocation& run) {
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  Console& console = run.console();
  const InterruptGuard guard;
  const Plan plan = PlanOf(run);
  Probe probe(run, *store);
  Samples samples;
  if (absl::Status chosen = probe.ChooseKey(); !chosen.ok()) return FailOf(run, chosen);
  // What is done for the first time takes longer.
  if (absl::Status warm = probe.Sample(samples); !warm.ok()) return FailOf(run, warm);
  samples.Clear();

  LiveLine live(console);
  int64_t began_ns = console.clock.NowMonotonicNs();
  uint64_t printed = 0;
  while (true) {
    if (absl::Status sampled = probe.Sample(samples); !sampled.ok()) {
      live.Clear();
      return FailOf(run, sampled);
    }
    const bool enough = !plan.lines && samples.get.count() == plan.count;
    const bool interrupted = !enough && !console.pause(kBetweenSamples);
    const bool interval_over = console.clock.NowMonotonicNs() - began_ns >= plan.interval.count();
    if (interrupted || enough || (interval_over && (plan.lines || plan.ends))) {
      live.Clear();
      console.out.Write(Format(run.format(), samples));
      console.out.Flush();
      if (interrupted) return ExitCode::kInterrupted;
      if (!plan.lines || ++printed == plan.count || !console.out.ok()) return ExitCode::kDone;
      samples.Clear();
      began_ns = console.clock.NowMonotonicNs();
    } else {
      live.Update(samples);
      if (!console.out.ok()) return ExitCode::kDone;
    }
  }
}

}  // namespace

constinit const Command kLatencyCommand = {
    .name = "latency",
    .arguments = "",
    .summary = "sample how long a GET's READ and a request take",
    .details =
        "A hundred times a second: reads an item one-sidedly, as GET does, without copying the\n"
        "value out, and sends a request that asks for nothing. On a terminal one line is updated\n"
        "until Ctrl-C; elsewhere one line is printed after 1s (--interval). 'kvcli --latency' and\n"
        "'kvcli --latency-history' (with --lines) are the same.\n"
        "Each is what somebody sees who asks now and then: a poller of kvd's may have to wake up\n"
        "for the request first. Under load kvbench measures, and 'kvcli doctor' sets times "
        "against\n"
        "what the network takes.\n"
        "Ctrl-C prints what was sampled, with exit status 130.\n",
    .examples =
        "kvcli --latency\n"
        "kvcli --latency-history -i 5\n"
        "kvcli latency --key=user:7 --count=1000 -w json\n",
    .flags = kLatencyFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunLatency,
};

}  // namespace kvd::cli
