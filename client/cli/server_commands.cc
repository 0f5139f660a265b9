// stat, info, ping: about the server itself.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

using Statistics = KeyValueStore::Statistics;

void Print(Invocation& run, const Statistics& statistics) {
  std::string text;
  Statistics shown;
  for (const auto& [name, value] : statistics) shown.emplace_back(OneLine(name), OneLine(value));
  switch (run.format()) {
    case OutputFormat::kSimple:
      text = FormatAligned(shown);
      break;
    case OutputFormat::kTable: {
      std::vector<std::vector<std::string>> rows;
      for (const auto& [name, value] : shown) rows.push_back({name, value});
      text = FormatTable({"NAME", "VALUE"}, rows, run.console().columns);
      break;
    }
    case OutputFormat::kJson:
      // `shown` is valid UTF-8, whatever the server sent.
      for (const auto& [name, value] : shown) {
        text += text.empty() ? "{" : ",";
        AppendJsonString(name, text);
        text += ':';
        uint64_t number = 0;
        if (absl::SimpleAtoi(value, &number) && IsNumber(value)) {
          text += JsonNumber(number);
        } else if (IsNumber(value)) {
          text += value;
        } else {
          AppendJsonString(value, text);
        }
      }
      text += text.empty() ? "{}\n" : "}\n";
      break;
  }
  run.console().out.Write(text);
}

ExitCode RunStat(Invocation& run) {
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<Statistics> statistics = store->Stats();
  if (!statistics.ok()) return run.FailOfStore("", statistics.status());
  Print(run, *statistics);
  return ExitCode::kDone;
}

// What of the statistics describes a server in a few lines, by the server's names for it.
constexpr std::string_view kDescription[] = {
    "version",         "commit",    "pid",      "uptime_seconds", "transports",     "memory_bytes",
    "free_bytes",      "page_kind", "evict",    "items",          "expiring_items", "user_bytes",
    "max_value_bytes", "pollers",   "sessions",
};

// "64 MiB" for a person; a program gets the number under its full name.
void MakeReadable(std::string& name, std::string& value) {
  constexpr std::string_view kBytes = "_bytes";
  uint64_t bytes = 0;
  if (!name.ends_with(kBytes) || !absl::SimpleAtoi(value, &bytes)) return;
  name.resize(name.size() - kBytes.size());
  value = FormatBytes(bytes);
}

ExitCode RunInfo(Invocation& run) {
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<Statistics> statistics = store->Stats();
  if (!statistics.ok()) return run.FailOfStore("", statistics.status());
  Statistics description = {{"server", store->target()}};
  for (const std::string_view wanted : kDescription) {
    for (auto [name, value] : *statistics) {
      if (name != wanted) continue;
      if (run.format() != OutputFormat::kJson) MakeReadable(name, value);
      description.emplace_back(std::move(name), std::move(value));
    }
  }
  Print(run, description);
  return ExitCode::kDone;
}

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

constinit const Command kStatCommand = {
    .name = "stat",
    .arguments = "",
    .summary = "print the server's statistics",
    .details =
        "A name and a value a line. With -w json, one object; numbers are numbers below 2^53, and\n"
        "strings from there on. stat, info and ping also reach a kvd that has --max_clients "
        "sessions\n"
        "already, from its own host, as its own user or root, and leave it when they are done.\n",
    .examples =
        "kvcli stat\n"
        "kvcli stat -w json\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunStat,
    .for_administration = true,
};

constinit const Command kInfoCommand = {
    .name = "info",
    .arguments = "",
    .summary = "describe the server in a few lines",
    .details = "A part of what stat prints, with sizes made readable; -w json has them in bytes.\n",
    .examples = "kvcli info\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunInfo,
    .for_administration = true,
};

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
