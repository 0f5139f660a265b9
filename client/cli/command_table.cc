#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/commands.h"
#include "client/cli/suggest.h"

namespace kvd::cli {
namespace {

constexpr const Command* kCommands[] = {
    &kGetCommand,     &kPutCommand,     &kDelCommand,   &kExistsCommand,  &kMgetCommand,
    &kCasCommand,     &kIncrCommand,    &kDecrCommand,  &kAppendCommand,  &kPrependCommand,
    &kTouchCommand,   &kTtlCommand,     &kScanCommand,  &kBigkeysCommand, &kFlushCommand,
    &kWatchCommand,   &kLoadCommand,    &kDumpCommand,  &kStatCommand,    &kInfoCommand,
    &kPingCommand,    &kLatencyCommand, &kAdminCommand, &kSlowlogCommand, &kDevicesCommand,
    &kDoctorCommand,  &kBundleCommand,  &kPlanCommand,  &kHelpCommand,    &kCompletionCommand,
    &kVersionCommand,
};

// What the same thing is called elsewhere, and how to ask for it here.
struct Synonym {
  std::string_view word;
  std::string_view here;
};

constexpr std::string_view kWithTtl = "put KEY VALUE --ttl=TIME";
constexpr std::string_view kIfAbsent = "put KEY VALUE --if=absent";
constexpr std::string_view kIfPresent = "put KEY VALUE --if=present";
constexpr std::string_view kTouchTtl = "touch KEY --ttl=TIME";
constexpr std::string_view kTouchAt = "touch KEY --expire_at=TIME";
constexpr std::string_view kGetTouch = "get KEY --touch --ttl=TIME";
constexpr std::string_view kManyPuts = "load -, with a line KEY, TAB, VALUE for each";
constexpr std::string_view kScanPrefix = "scan --prefix=P";

constexpr Synonym kSynonyms[] = {
    {"incrby", "incr"},
    {"decrby", "decr"},
    {"expire", kTouchTtl},
    {"pexpire", kTouchTtl},
    {"expireat", kTouchAt},
    {"pexpireat", kTouchAt},
    {"persist", "touch KEY"},
    {"gat", kGetTouch},
    {"getex", kGetTouch},
    {"gets", "get KEY -w json"},
    {"pttl", "ttl KEY -w json"},
    {"flushall", "flush"},
    {"flushdb", "flush"},
    {"flush_all", "flush"},
    {"clear", "flush"},
    {"set", "put"},
    {"insert", "put"},
    {"store", "put"},
    {"setex", kWithTtl},
    {"psetex", kWithTtl},
    {"setnx", kIfAbsent},
    {"add", kIfAbsent},
    {"replace", kIfPresent},
    {"mset", kManyPuts},
    {"mput", kManyPuts},
    {"msetnx", kManyPuts},
    {"delete", "del"},
    {"rm", "del"},
    {"remove", "del"},
    {"unlink", "del"},
    {"mdel", "del"},
    {"keys", kScanPrefix},
    {"ls", kScanPrefix},
    {"list", kScanPrefix},
    {"has", "exists"},
    {"stats", "stat"},
    {"status", "stat"},
    {"display", "stat"},
    {"dbsize", "stat items"},
    {"import", "load"},
    {"restore", "load"},
    {"export", "dump"},
    {"backup", "dump"},
    {"multiget", "mget"},
    {"read", "get"},
    {"fetch", "get"},
    {"save", "dump"},
    {"monitor", "watch --prefix="},
    {"subscribe", "watch KEY..."},
    {"psubscribe", "watch --prefix=P"},
    {"man", "help"},
};

constexpr Flag kGlobalFlags[] = {
    {"server", '\0', FlagKind::kText, "TARGET", "",
     "where kvd listens: shm:PATH, PATH, rdma:HOST:PORT or HOST:PORT; without it, this user's "
     "default socket; one that is starting there is waited for, 1s at most"},
    {"device", '\0', FlagKind::kText, "NAME", "",
     "RDMA device to use, as 'kvcli devices' lists it; without it, the one that leads to the "
     "server"},
    {"connect", '\0', FlagKind::kChoice, "cm|tcp", "cm",
     "how an RDMA server is connected to: by rdma_cm, or as its own --connect=tcp says"},
    {"gid_index", '\0', FlagKind::kCount, "N", "",
     "GID of the device's port to use with --connect=tcp; without it, it is chosen"},
    {"key_file", '\0', FlagKind::kText, "PATH", "",
     "file with the key to be admitted by, as kvd's --keys has it; for its owner alone (mode "
     "0600)"},
    {"key_name", '\0', FlagKind::kText, "NAME", "",
     "which key of that file; without it, the first"},
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

ConnectOptions ConnectOptionsOf(const FlagValues& flags) {
  ConnectOptions options;
  options.deadline = flags.Duration("deadline");
  options.rdma.device = flags.Text("device");
  options.key.file = flags.Text("key_file");
  options.key.name = flags.Text("key_name");
  options.rdma.connect_by_tcp = flags.Text("connect") == "tcp";
  if (flags.IsSet("gid_index")) {
    // No port has so many: the connection says so.
    options.rdma.gid_index =
        static_cast<int>(std::min<uint64_t>(flags.Count("gid_index"), INT32_MAX));
  }
  return options;
}

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
    if (synonym.word == lower) return synonym.here;
  }
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  return Nearest(lower, names);
}

}  // namespace kvd::cli
