// admin: who is connected to the server, and the end of somebody's sessions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

using Facts = KeyValueStore::Statistics;

void AppendJsonObject(const Facts& facts, std::string& text) {
  bool first = true;
  for (const auto& [name, value] : facts) {
    text += std::exchange(first, false) ? '{' : ',';
    AppendJsonString(OneLine(name), text);
    text += ':';
    AppendJsonString(OneLine(value), text);
  }
  text += first ? "{}\n" : "}\n";
}

// Columns are what any of the sessions has, in the order in which they are met.
std::string TableOf(const std::vector<Facts>& sessions, size_t columns) {
  std::vector<std::string> names;
  for (const Facts& facts : sessions) {
    for (const auto& [name, value] : facts) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const Facts& facts : sessions) {
    std::vector<std::string>& row = rows.emplace_back(names.size());
    for (const auto& [name, value] : facts) {
      const auto at = std::find(names.begin(), names.end(), name) - names.begin();
      row[static_cast<size_t>(at)] = OneLine(value);
    }
  }
  for (std::string& name : names) name = absl::AsciiStrToUpper(OneLine(name));
  return FormatTable(names, rows, columns);
}

ExitCode PrintSessions(Invocation& run, KeyValueStore& store) {
  const absl::StatusOr<std::vector<Facts>> sessions = store.Sessions();
  if (!sessions.ok()) return run.FailOfStore("", sessions.status());
  std::string text;
  if (run.format() == OutputFormat::kTable) {
    text = TableOf(*sessions, run.console().columns);
  } else {
    for (const Facts& facts : *sessions) {
      if (run.format() == OutputFormat::kJson) {
        AppendJsonObject(facts, text);
        continue;
      }
      for (const auto& [name, value] : facts)
        absl::StrAppend(&text, text.empty() || text.back() == '\n' ? "" : " ", OneLine(name), "=",
                        OneLine(value));
      text += '\n';
    }
  }
  run.console().out.Write(text);
  return ExitCode::kDone;
}

ExitCode Kick(Invocation& run, KeyValueStore& store, const std::string& who) {
  const absl::StatusOr<uint64_t> ended = store.Kick(who);
  if (!ended.ok()) return run.FailOfStore(who, ended.status());
  std::string text = absl::StrCat(*ended, "\n");
  if (run.format() == OutputFormat::kJson) text = absl::StrCat("{\"ended\":", *ended, "}\n");
  if (run.format() == OutputFormat::kTable) text = FormatTable({"ENDED"}, {{absl::StrCat(*ended)}});
  run.console().out.Write(text);
  return *ended == 0 ? ExitCode::kNotFound : ExitCode::kDone;
}

ExitCode RunAdmin(Invocation& run) {
  const std::vector<std::string>& arguments = run.arguments();
  const bool sessions = arguments[0] == "sessions" && arguments.size() == 1;
  const bool kick = arguments[0] == "kick" && arguments.size() == 2;
  if (!sessions && !kick) {
    return run.Fail("", UsageFailure("is 'admin sessions' or 'admin kick CLIENT'"));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  return sessions ? PrintSessions(run, *store) : Kick(run, *store, arguments[1]);
}

}  // namespace

constinit const Command kAdminCommand = {
    .name = "admin",
    .arguments = "sessions | kick CLIENT",
    .summary = "list who is connected, or end a client's sessions",
    .details =
        "For kvd's own user and root on its host, and keys of the role admin; others are refused.\n"
        "sessions prints a line each: number, client, name, address, key, role, since when.\n"
        "kick ends the sessions of CLIENT and prints how many: session:NUMBER, client:HEX,\n"
        "name:NAME (as sessions shows it), key:NAME, user:UID or address:HOST. Without such a\n"
        "prefix digits are a session's number, and anything else is a name; where somebody else\n"
        "could be meant as well it says who, and ends nobody's session. A client that is let in\n"
        "again comes back by itself: take its key out of kvd's key file first (SIGHUP to kvd ends\n"
        "its sessions as well). Exit status 1: there was none.\n",
    .examples =
        "kvcli admin sessions -w table\n"
        "kvcli admin kick key:app-2026-11\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunAdmin,
    .for_administration = true,
};

}  // namespace kvd::cli
