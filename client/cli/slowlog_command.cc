// slowlog: the requests that took the server long, of late.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/cli/time_text.h"

namespace kvd::cli {
namespace {

using Facts = KeyValueStore::Statistics;

// The server's names, and the heads of the table's columns.
constexpr std::pair<std::string_view, std::string_view> kColumns[] = {
    {"at_unix_us", "WHEN"},
    {"requests", "REQUESTS"},
    {"operation", "OPERATION"},
    {"session", "SESSION"},
    {"name", "NAME"},
    {"key_bytes", "KEY BYTES"},
    {"value_bytes", "VALUE BYTES"},
    {"us", "US"},
    {"phase", "PHASE"},
    {"waiting_us", "WAITING"},
    {"pulling_us", "PULLING"},
    {"evicting_us", "EVICTING"},
    {"executing_us", "EXECUTING"},
    {"stalled_us", "STALLED"},
};

std::string Cell(std::string_view name, std::string_view value) {
  int64_t unix_us = 0;
  if (name == "at_unix_us" && absl::SimpleAtoi(std::string(value), &unix_us))
    return MomentText(unix_us);
  return OneLine(value);
}

std::string TableOf(const std::vector<Facts>& requests, size_t columns) {
  std::vector<std::string> header;
  for (const auto& [unused, head] : kColumns) header.emplace_back(head);
  std::vector<std::vector<std::string>> rows;
  for (const Facts& facts : requests) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& [wanted, unused] : kColumns) {
      row.emplace_back();
      for (const auto& [name, value] : facts) {
        if (name == wanted) row.back() = Cell(name, value);
      }
    }
  }
  return FormatTable(header, rows, columns);
}

// Numbers as numbers; of a client's name that looks like one, a string.
std::string JsonOf(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += text.empty() ? '{' : ',';
    AppendJsonString(OneLine(name), text);
    text += ':';
    uint64_t number = 0;
    if (name != "name" && IsNumber(value) && absl::SimpleAtoi(value, &number)) {
      text += JsonNumber(number);
    } else {
      AppendJsonString(OneLine(value), text);
    }
  }
  return text + (text.empty() ? "{}\n" : "}\n");
}

ExitCode RunSlowlog(Invocation& run) {
  uint64_t wanted = UINT64_MAX;
  if (!run.arguments().empty() && !absl::SimpleAtoi(run.arguments()[0], &wanted))
    return run.Fail(run.arguments()[0], UsageFailure("N is how many are to be shown"));
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  absl::StatusOr<std::vector<Facts>> requests = store->SlowRequests();
  if (!requests.ok()) return run.FailOfStore("", requests.status());
  if (requests->size() > wanted) requests->resize(wanted);
  std::string text;
  if (run.format() == OutputFormat::kJson) {
    for (const Facts& facts : *requests) text += JsonOf(facts);
  } else if (!requests->empty()) {
    text = TableOf(*requests, run.console().columns);
  }
  run.console().out.Write(text);
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kSlowlogCommand = {
    .name = "slowlog",
    .arguments = "[N]",
    .summary = "list the requests that took the server long",
    .details =
        "The last 128 that took as long as kvd's --slow_log says, the newest first; N: that many "
        "of\n"
        "them. Those of one batch that were late for the same reason are one line, which counts "
        "them.\n"
        "Whose it was (session and name as 'admin sessions' has them; session 0 has gone), how "
        "long\n"
        "it took from when kvd had it to when it had answered, and where: waiting for other "
        "requests,\n"
        "pulling the value from the client's memory, evicting others to make room, executing, or\n"
        "stalled: its poller had no processor; microseconds. Never keys or values. For kvd's own "
        "user\n"
        "and root on its host, and keys of the role admin. With -w json, an object a line. Prints\n"
        "nothing if there were none.\n",
    .examples =
        "kvcli slowlog 10\n"
        "kvcli slowlog -w json\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunSlowlog,
    .for_administration = true,
};

}  // namespace kvd::cli
