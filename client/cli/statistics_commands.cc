// stat, info: what the server says of itself.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/stat_rates.h"
#include "client/cli/stat_screen.h"
#include "client/cli/suggest.h"
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

constexpr Flag kStatFlags[] = {
    {"interval", 'i', FlagKind::kDuration, "TIME", "",
     "print them again every TIME, 5s or 200ms, until Ctrl-C; a connection each time", false},
    {"count", 'c', FlagKind::kCount, "N", "0",
     "with --interval or --rates: N times; 0: without an end", false},
    {"rates", '\0', FlagKind::kSwitch, "", "false",
     "a line each second, or each --interval: requests, items, memory, sessions", false},
    {"all", 'a', FlagKind::kSwitch, "", "false", "every statistic by its name, also on a terminal",
     false},
};

// Those of `all` that the arguments name, in their order; all without arguments. Nothing: one is
// not there, which has been reported; return kNotFound.
std::optional<Statistics> Chosen(Invocation& run, const Statistics& all) {
  if (run.arguments().empty()) return all;
  Statistics chosen;
  for (const std::string& name : run.arguments()) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&name](const auto& each) { return each.first == name; });
    if (found == all.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, unused] : all) {
        if (!known.empty()) names.push_back(known);
      }
      const std::string_view near = Nearest(name, names);
      run.Fail(name, {ExitCode::kNotFound,
                      near.empty()
                          ? std::string("no such statistic; 'kvcli stat' prints all")
                          : absl::StrCat("no such statistic; did you mean ", OneLine(near), "?")});
      return std::nullopt;
    }
    chosen.push_back(*found);
  }
  return chosen;
}

ExitCode PrintStatistics(Invocation& run) {
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<Statistics> statistics = store->Stats();
  if (!statistics.ok()) return run.FailOfStore("", statistics.status());
  if (run.console().out_is_terminal && run.format() == OutputFormat::kSimple &&
      run.arguments().empty() && !run.flags().Switch("all")) {
    run.console().out.Write(StatScreen(*statistics, store->target()));
    return ExitCode::kDone;
  }
  const std::optional<Statistics> chosen = Chosen(run, *statistics);
  if (!chosen.has_value()) return ExitCode::kNotFound;
  if (run.format() != OutputFormat::kSimple || run.arguments().empty()) {
    Print(run, *chosen);
  } else {  // for a script, which knows what it asked for
    for (const auto& [unused, value] : *chosen) run.console().out.Write(OneLine(value) + "\n");
  }
  return ExitCode::kDone;
}

ExitCode RunStat(Invocation& run) {
  const FlagValues& flags = run.flags();
  const bool again = flags.IsSet("interval");
  const InterruptGuard guard;
  if (flags.Switch("rates")) {
    if (!run.arguments().empty()) {
      return run.Fail("", UsageFailure("--rates has columns of its own; give no NAME with it"));
    }
    return PrintRates(run);
  }
  if (!again && flags.IsSet("count")) {
    return run.Fail("", UsageFailure("--count is of those that --interval prints; add it"));
  }
  const bool apart = run.format() == OutputFormat::kSimple && run.arguments().size() != 1;
  for (uint64_t printed = 1;; ++printed) {
    const ExitCode exit = PrintStatistics(run);
    if (exit != ExitCode::kDone || !again || printed == flags.Count("count")) return exit;
    if (apart) run.console().out.Write("\n");
    run.console().out.Flush();
    if (!run.console().out.ok()) return exit;
    run.EndAdministration();  // not to be kept while nothing is asked
    if (!run.console().pause(flags.Duration("interval"))) return ExitCode::kInterrupted;
  }
}

// What of the statistics describes a server in a few lines, by the server's names for it.
constexpr std::string_view kDescription[] = {
    "version",         "commit",     "pid",           "uptime_seconds", "transports",
    "memory_bytes",    "free_bytes", "page_kind",     "evict",          "items",
    "expiring_items",  "user_bytes", "expired_items", "evicted_items",  "no_space",
    "max_value_bytes", "pollers",    "sessions",
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

}  // namespace

constinit const Command kStatCommand = {
    .name = "stat",
    .arguments = "[NAME...]",
    .summary = "print the server's statistics",
    .details =
        "On a terminal one screen of what matters; with --all, and into a pipe or file, every\n"
        "statistic, a name and a value a line. With NAME the value of that one alone, and exit\n"
        "status 1 if there is none of that name. docs/statistics.md tells what each means. With\n"
        "-w json, one object; numbers are numbers below 2^53, and strings from there on.\n"
        "--rates, or 'kvcli --stat', prints a line each second: what is there, and what came\n"
        "since the line before. asked/s are GETs that clients had kvd answer. gets/s and reads/s\n"
        "are what clients report of their own reading, which kvd does not see: they do so every\n"
        "2 seconds, so these rates are over the last 4 seconds, or since the line before where\n"
        "that is longer ago, and '-' before there are so many. A kvd that goes away and comes\n"
        "back is waited for.\n"
        "stat, info and ping also reach a kvd that has --max_clients sessions already, from its\n"
        "own host, as its own user or root, and leave it when they are done.\n",
    .examples =
        "kvcli stat\n"
        "kvcli stat -w json\n"
        "kvcli stat items evicted_items\n"
        "kvcli stat free_bytes --interval=5s\n"
        "kvcli --stat\n"
        "kvcli stat --rates --interval=10s --count=6 -w json\n",
    .flags = kStatFlags,
    .arguments_min = 0,
    .arguments_max = kAnyNumber,
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

}  // namespace kvd::cli
