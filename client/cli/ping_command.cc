// ping: how long a request to the server takes.
#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

constexpr Flag kPingFlags[] = {
    {"count", 'c', FlagKind::kCount, "N", "1", "round trips, one after the other; at least 1"},
};

using Microseconds = std::chrono::duration<double, std::micro>;

struct RoundTrips {
  uint64_t count = 0;
  Microseconds min = Microseconds::max();
  Microseconds max{0};
  Microseconds sum{0};

  void Add(Microseconds time) {
    ++count;
    min = std::min(min, time);
    max = std::max(max, time);
    sum += time;
  }
  double average_us() const { return sum.count() / static_cast<double>(count); }
};

std::string Format(OutputFormat format, std::string_view target, const RoundTrips& trips) {
  const std::string min = absl::StrFormat("%.1f", trips.min.count());
  const std::string average = absl::StrFormat("%.1f", trips.average_us());
  const std::string max = absl::StrFormat("%.1f", trips.max.count());
  switch (format) {
    case OutputFormat::kJson:
      return absl::StrCat("{\"count\":", trips.count, ",\"min_us\":", min, ",\"avg_us\":", average,
                          ",\"max_us\":", max, "}\n");
    case OutputFormat::kTable:
      return FormatTable({"COUNT", "MIN US", "AVG US", "MAX US"},
                         {{absl::StrCat(trips.count), min, average, max}});
    case OutputFormat::kSimple:
      break;
  }
  return absl::StrCat("PONG from ", OneLine(target), ": ", trips.count,
                      trips.count == 1 ? " round trip" : " round trips", ", min/avg/max ", min, "/",
                      average, "/", max, " us\n");
}

ExitCode RunPing(Invocation& run) {
  const uint64_t count = run.flags().Count("count");
  if (count == 0) return run.Fail("", UsageFailure("--count=0 pings nothing; give 1 or more"));
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const InterruptGuard guard;
  RoundTrips trips;
  while (trips.count < count && !run.console().interrupted()) {
    const absl::StatusOr<std::chrono::nanoseconds> time = store->Ping();
    if (!time.ok()) return run.FailOfStore("", time.status());
    trips.Add(*time);
  }
  if (trips.count > 0) run.console().out.Write(Format(run.format(), store->target(), trips));
  return trips.count == count ? ExitCode::kDone : ExitCode::kInterrupted;
}

}  // namespace

constinit const Command kPingCommand = {
    .name = "ping",
    .arguments = "",
    .summary = "time requests to the server and back",
    .details =
        "Prints the shortest, mean and longest round trip. Exit status 3: no server; 4: no\n"
        "answer in time.\n",
    .examples =
        "kvcli ping\n"
        "kvcli ping -c 1000\n",
    .flags = kPingFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunPing,
    .for_administration = true,
};

}  // namespace kvd::cli
