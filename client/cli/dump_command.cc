#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/item_format.h"
#include "client/cli/output_file.h"
#include "client/cli/prefix_flag.h"
#include "client/cli/progress.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr Flag kDumpFlags[] = {
    {"format", '\0', FlagKind::kChoice, "auto|jsonl|tsv", "auto",
     "auto: by the ending of FILE, JSON lines where that does not tell"},
    kPrefixFlag,
};

ItemFormat FormatFor(Invocation& run, std::string_view path) {
  const auto named = FormatOfWord(run.flags().Text("format"));
  return named.value_or(FormatOfName(path).value_or(ItemFormat::kJsonLines));
}

struct Written {
  ProgressCounts counts;
  uint64_t bytes = 0;
};

absl::Status WriteItems(Invocation& run, KeyValueStore& store, std::string_view prefix,
                        ItemFormat format, ByteSink& sink, Progress& progress, Written& written) {
  std::string line;
  const auto write = [&](std::string_view key, std::string_view value, const ItemInfo& info) {
    if (!sink.ok() || run.console().interrupted()) return false;
    line.clear();
    AppendItemLine(format, key, value, {info.expiry_unix_us, info.user_flags}, line);
    sink.Write(line);
    ++written.counts.items;
    written.bytes += key.size() + value.size();
    progress.Update(written.counts);
    return true;
  };
  return store.Scan(write, {.prefix = prefix}).status();
}

// After the last item: what a person, or a script, wants to know of it.
ExitCode Conclude(Invocation& run, const std::string& path, const absl::Status& scanned,
                  OutputFile* file, const Written& written, int64_t elapsed_ns) {
  const std::string summary =
      absl::StrCat(written.counts.items, written.counts.items == 1 ? " item (" : " items (",
                   FormatBytes(written.bytes), ") in ",
                   FormatPace(written.counts.items, written.bytes, elapsed_ns));
  const std::string_view unchanged = file != nullptr ? "; the file was not changed" : "";
  if (run.console().interrupted()) {
    run.Note(path, absl::StrCat("interrupted after ", summary, std::string(unchanged)));
    return ExitCode::kInterrupted;
  }
  if (!scanned.ok()) return run.FailOfStore(path, scanned);
  const uint64_t replaced = file == nullptr ? 0 : file->replaced_bytes();
  if (written.counts.items == 0 && replaced != 0) {
    // A kvd that was started anew is empty: what was saved of it before is worth more.
    return run.Fail(path, Failure{ExitCode::kNotFound,
                                  absl::StrCat("there is no item to write, and the file has ",
                                               FormatBytes(replaced),
                                               " of before; it was not changed; remove it first if "
                                               "it is to be empty")});
  }
  if (file != nullptr) {
    if (const absl::Status status = file->Commit(); !status.ok()) {
      return run.Fail(path, LocalIoFailure(status));
    }
  }
  run.Note(path, absl::StrCat(summary, replaced == 0 ? ""
                                                     : absl::StrCat("; in the place of a file of ",
                                                                    FormatBytes(replaced))));
  if (written.counts.items == 0) NoteOfPattern(run);
  return ExitCode::kDone;
}

ExitCode RunDump(Invocation& run) {
  std::string prefix;
  if (!run.BytesOfArgument(run.flags().Text("prefix"), prefix)) return ExitCode::kUsage;
  const std::string path =
      run.arguments().empty() || run.arguments()[0] == "-" ? "" : run.arguments()[0];
  if (path.ends_with(".gz")) {
    return run.Fail(path, UsageFailure("dump compresses nothing; kvcli dump | gzip > " + path));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  std::unique_ptr<OutputFile> file;
  if (!path.empty()) {
    absl::StatusOr<std::unique_ptr<OutputFile>> created = OutputFile::Create(path);
    if (!created.ok()) return run.Fail(path, LocalIoFailure(created.status()));
    file = *std::move(created);
  }
  ByteSink& sink = file != nullptr ? file->sink() : run.console().out;
  const InterruptGuard guard;
  // A bar between lines of data would help nobody.
  Progress progress(run.console(), absl::StrCat("dump ", path),
                    file != nullptr || !run.console().out_is_terminal);
  Written written;
  const absl::Status scanned =
      WriteItems(run, *store, prefix, FormatFor(run, path), sink, progress, written);
  progress.Clear();
  const int64_t elapsed_ns = progress.elapsed_ns();
  if (file == nullptr) {
    sink.Flush();
    if (!sink.ok()) return ExitCode::kLocalIo;  // told where every command's output is looked at
  }
  return Conclude(run, path, scanned, file.get(), written, elapsed_ns);
}

}  // namespace

constinit const Command kDumpCommand = {
    .name = "dump",
    .arguments = "[FILE]",
    .summary = "write every item to a file, or to standard output",
    .details =
        "JSON lines: {\"key\":\"...\",\"value\":\"...\"}, with key_base64 or value_base64 for what "
        "is no\n"
        "text, and expiry_unix_us and user_flags where an item has them. TSV: KEY, TAB, VALUE,\n"
        "with \\t \\n \\r \\\\ \\xNN for bytes that are no text, and the same two, named, behind "
        "TABs.\n"
        "Either comes back byte for byte with load. In no order; as it is while it goes on: an\n"
        "item that is written meanwhile may come twice, the later value later. FILE appears, or "
        "takes\n"
        "the place of an earlier one, only once all of it is on the disk; an error or Ctrl-C "
        "(exit\n"
        "status 130) leaves it as it was. An earlier FILE that holds something is not replaced by "
        "a\n"
        "dump of no items: exit status 1.\n",
    .examples =
        "kvcli dump backup.jsonl\n"
        "kvcli dump --format=tsv | gzip > backup.tsv.gz\n"
        "kvcli dump | kvcli load - --server=shm:/tmp/other.sock\n",
    .flags = kDumpFlags,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunDump,
};

}  // namespace kvd::cli
