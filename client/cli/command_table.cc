#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/commands.h"
#include "client/cli/suggest.h"

namespace kvd::cli {
namespace {

constexpr const Command* kCommands[] = {
    &kGetCommand,    &kPutCommand,  &kDelCommand,        &kExistsCommand,
    &kMgetCommand,   &kScanCommand, &kLoadCommand,       &kDumpCommand,
    &kStatCommand,   &kInfoCommand, &kPingCommand,       &kDevicesCommand,
    &kDoctorCommand, &kHelpCommand, &kCompletionCommand, &kVersionCommand,
};

// What the same thing is called elsewhere.
struct Synonym {
  std::string_view word;
  std::string_view command;
};

constexpr Synonym kSynonyms[] = {
    {"set", "put"},     {"add", "put"},     {"insert", "put"},    {"store", "put"},
    {"delete", "del"},  {"rm", "del"},      {"remove", "del"},    {"unlink", "del"},
    {"keys", "scan"},   {"ls", "scan"},     {"list", "scan"},     {"has", "exists"},
    {"stats", "stat"},  {"status", "stat"}, {"import", "load"},   {"restore", "load"},
    {"export", "dump"}, {"backup", "dump"}, {"multiget", "mget"}, {"read", "get"},
    {"fetch", "get"},   {"save", "dump"},   {"man", "help"},
};

constexpr Flag kGlobalFlags[] = {
    {"server", '\0', FlagKind::kText, "TARGET", "",
     "where kvd listens: shm:PATH, or PATH; without it, this user's default socket; a kvd that is "
     "starting is waited for, 1s at most"},
    {"deadline", '\0', FlagKind::kDuration, "TIME", "5s",
     "for connecting, and for each operation; scan and dump have none unless it is given"},
    {"write_out", 'w', FlagKind::kChoice, "simple|json|table", "simple", "form of what is printed"},
    {"hex", '\0', FlagKind::kSwitch, "", "false",
     "keys and values are hexadecimal, as arguments and as printed"},
    {"history", '\0', FlagKind::kText, "PATH", "~/.kvcli_history",
     "where the prompt keeps its lines; --history= for nowhere"},
    {"help", 'h', FlagKind::kSwitch, "", "false", "this text, or a command's", false},
    {"version", '\0', FlagKind::kSwitch, "", "false", "print the version", false},
};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::span<const Command* const> AllCommands() { return kCommands; }

std::span<const Flag> GlobalFlags() { return kGlobalFlags; }

const Command* FindCommand(std::string_view name) {
  const std::string lower = LowerCase(name);
  for (const Command* command : kCommands) {
    if (command->name == lower) return command;
  }
  return nullptr;
}

std::string_view NearestCommand(std::string_view name) {
  const std::string lower = LowerCase(name);
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.word == lower) return synonym.command;
  }
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  return Nearest(lower, names);
}

}  // namespace kvd::cli
