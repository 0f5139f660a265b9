#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/line_reader.h"
#include "client/cli/prefix_flag.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

constexpr Flag kFlushFlags[] = {
    kPrefixFlag,
    {"yes", 'y', FlagKind::kSwitch, "", "false", "do not ask", false},
};

// Somebody at the terminal says so.
bool IsConfirmed(Invocation& run, std::string_view what, std::string_view where) {
  Console& console = run.console();
  console.out.Flush();
  console.err.Write(absl::StrCat("Delete ", std::string(what), " of ", OneLine(where), "? [y/N] "));
  console.err.Flush();
  LineReader answer(console.in, 100);
  const absl::StatusOr<LineReader::Outcome> outcome = answer.Next();
  if (!outcome.ok() || *outcome != LineReader::Outcome::kLine) return false;
  return answer.line() == "y" || answer.line() == "Y" || answer.line() == "yes";
}

ExitCode RunFlush(Invocation& run) {
  std::string prefix;
  if (!run.BytesOfArgument(run.flags().Text("prefix"), prefix)) return ExitCode::kUsage;
  const bool ask = !run.flags().Switch("yes");
  Console& console = run.console();
  const std::string what = prefix.empty() ? std::string("all items")
                                          : absl::StrCat("all items whose keys begin with ",
                                                         Quoted(run.flags().Text("prefix")));
  if (ask && !(console.in_is_terminal && console.err_is_terminal)) {
    return run.Fail("",
                    UsageFailure(absl::StrCat("deletes ", what, "; add --yes if that is meant")));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  if (ask && !IsConfirmed(run, what, store->target())) {
    return run.Fail("", UsageFailure("nothing was deleted; answer y or yes, or add --yes"));
  }
  const absl::StatusOr<uint64_t> deleted = store->Flush(prefix);
  if (!deleted.ok()) return run.FailOfStore("", deleted.status());
  std::string text = absl::StrCat(*deleted, "\n");
  if (run.format() == OutputFormat::kJson) text = absl::StrCat("{\"deleted\":", *deleted, "}\n");
  if (run.format() == OutputFormat::kTable) {
    text = FormatTable({"DELETED"}, {{absl::StrCat(*deleted)}});
  }
  console.out.Write(text);
  if (*deleted == 0) NoteOfPattern(run);
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kFlushCommand = {
    .name = "flush",
    .arguments = "",
    .summary = "delete every item, or all of a prefix; prints how many",
    .details =
        "Asks on a terminal; elsewhere, and in a file of commands, --yes is needed. Other clients\n"
        "go on meanwhile: an item that is written while this runs may stay. With --hex, P is\n"
        "hexadecimal too. Exit status 2: not confirmed, nothing was deleted.\n",
    .examples =
        "kvcli flush --prefix=session:\n"
        "kvcli flush --yes\n",
    .flags = kFlushFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunFlush,
};

}  // namespace kvd::cli
