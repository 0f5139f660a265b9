// watch: prints what changes.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/change_watch.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

constexpr Flag kWatchFlags[] = {
    {"prefix", '\0', FlagKind::kText, "P", "",
     "every key that begins with P instead of some; --prefix= for all", false},
    {"interval", 'i', FlagKind::kDuration, "TIME", "100ms", "between two looks", false},
    {"count", 'c', FlagKind::kCount, "N", "0", "end after N changes; 0: without an end", false},
};

std::string TextOf(Invocation& run, const Change& change) {
  if (run.format() != OutputFormat::kJson) {
    const TextStyle style = {run.hex(), run.console().out_is_terminal};
    return absl::StrCat(change.gone ? "DELETE\n" : "PUT\n", LineText(change.key, style), "\n",
                        ValueText(change.value, style), "\n");
  }
  std::string text = "{\"event\":";
  if (change.gone) {
    text += "\"DELETE\",";
    AppendJsonBytes("key", change.key, run.byte_text(), text);
    return text + "}\n";
  }
  std::string item;
  AppendItemJson(change.key, change.value, change.info, run.byte_text(), item);
  return absl::StrCat(text, "\"PUT\",", item.substr(1));
}

ExitCode Watch(Invocation& run, ChangeWatch watch) {
  const FlagValues& flags = run.flags();
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  Console& console = run.console();
  const InterruptGuard guard;
  const uint64_t count = flags.Count("count");
  uint64_t printed = 0;
  do {
    const absl::StatusOr<std::vector<Change>> changes = watch.Look(*store);
    if (!changes.ok()) return run.FailOfStore("", changes.status());
    for (const Change& change : *changes) {
      console.out.Write(TextOf(run, change));
      if (++printed == count) return ExitCode::kDone;
    }
    console.out.Flush();
    if (!console.out.ok()) return ExitCode::kDone;
  } while (console.pause(flags.Duration("interval")));
  return ExitCode::kInterrupted;
}

ExitCode RunWatch(Invocation& run) {
  const bool by_prefix = run.flags().IsSet("prefix");
  if (by_prefix != run.arguments().empty()) {
    return run.Fail("", UsageFailure(by_prefix ? "both keys and --prefix; give one of them"
                                               : "KEY is missing; give keys, or --prefix=P"));
  }
  if (by_prefix) {
    std::string prefix;
    if (!run.BytesOfArgument(run.flags().Text("prefix"), prefix)) return ExitCode::kUsage;
    return Watch(run, ChangeWatch(std::move(prefix)));
  }
  std::vector<std::string> keys;
  if (!run.BytesOfArguments(0, keys)) return ExitCode::kUsage;
  return Watch(run, ChangeWatch(std::move(keys)));
}

}  // namespace

constinit const Command kWatchCommand = {
    .name = "watch",
    .arguments = "[KEY...]",
    .summary = "print items as they change",
    .details =
        "PUT, the key and the value, a line each, when an item has another version than at the\n"
        "last look; DELETE, the key and an empty line when it has gone: deleted, expired or\n"
        "evicted. With -w json an object a line, with the version. Nothing is printed for what is\n"
        "there at the beginning.\n"
        "kvd does not tell of changes: kvcli reads the items again and again, one-sidedly, which\n"
        "costs kvd no processor time. So several changes between two looks are seen as one, the\n"
        "last; and an item that came and went between them is not seen at all. Each look reads\n"
        "each item whole; with --prefix, the whole store, and kvcli remembers a version for each\n"
        "key. Between two looks of a store of many GB there is as much time as that takes.\n"
        "Ctrl-C ends it with exit status 130.\n",
    .examples =
        "kvcli watch config:a config:b\n"
        "kvcli watch --prefix=job: --interval=1s -w json\n"
        "kvcli watch done --count=1 --interval=10ms\n",
    .flags = kWatchFlags,
    .arguments_min = 0,
    .arguments_max = kAnyNumber,
    .run = RunWatch,
};

}  // namespace kvd::cli
