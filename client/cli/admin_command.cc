// admin: who is connected to the server, and the end of somebody's sessions.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/cli/time_text.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

using Facts = KeyValueStore::Statistics;

// All else is digits because it counts something.
bool IsText(std::string_view name) {
  constexpr std::string_view kTexts[] = {"client", "name", "transport", "address", "key", "role"};
  return std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts);
}

void AppendJsonObject(const Facts& facts, std::string& text) {
  bool first = true;
  for (const auto& [name, value] : facts) {
    text += std::exchange(first, false) ? '{' : ',';
    AppendJsonString(OneLine(name), text);
    text += ':';
    uint64_t number = 0;
    if (!IsText(name) && absl::SimpleAtoi(value, &number)) {
      text += JsonNumber(number);
    } else {
      AppendJsonString(OneLine(value), text);
    }
  }
  text += first ? "{}\n" : "}\n";
}

// As a person reads it: a moment under a name without its unit, a size with one.
void MakeReadable(std::string& name, std::string& value) {
  constexpr std::string_view kMoment = "_unix_us";
  constexpr std::string_view kBytes = "_bytes";
  constexpr uint64_t kSecondUs = 1'000'000;
  constexpr uint64_t kMomentMaxUs = 253'402'300'799 * kSecondUs;  // the end of the year 9999
  uint64_t number = 0;
  if (!absl::SimpleAtoi(value, &number)) return;
  if (name.ends_with(kMoment) && number <= kMomentMaxUs) {
    name.resize(name.size() - kMoment.size());
    value = MomentText(static_cast<int64_t>(number / kSecondUs * kSecondUs));
  } else if (name.ends_with(kBytes)) {
    value = FormatBytes(number);
  }
}

// Of what clients report, what none has reported anything of.
bool SaysNothing(std::string_view name, const std::vector<Facts>& sessions) {
  const auto is_zero = [name](const Facts& facts) {
    return std::all_of(facts.begin(), facts.end(), [name](const auto& each) {
      return each.first != name || each.second == "0";
    });
  };
  return name.starts_with("reported_") && std::all_of(sessions.begin(), sessions.end(), is_zero);
}

// Columns are what any of the sessions has, in the order in which they are met.
std::string TableOf(const std::vector<Facts>& all_sessions, size_t columns) {
  std::vector<std::string> names;
  std::vector<Facts> sessions;
  for (const Facts& all_facts : all_sessions) {
    Facts& facts = sessions.emplace_back();
    for (auto [name, value] : all_facts) {
      if (SaysNothing(name, all_sessions)) continue;
      MakeReadable(name, value);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      facts.emplace_back(std::move(name), std::move(value));
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
  if (*ended != 0) return ExitCode::kDone;
  run.Note(who, "there is no such session; 'kvcli admin sessions' lists them");
  return ExitCode::kNotFound;
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
        "sessions prints a line each: number, client, name, address, key, role, since when;\n"
        "how many requests and writes came so far, their bytes and those of the replies; and\n"
        "what the client reports of its reading, every few seconds: nobody else sees that, and\n"
        "only what cannot be is not believed. A table leaves out what none has reported anything "
        "of.\n"
        "With -w json numbers are numbers below 2^53, and strings from there on.\n"
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
