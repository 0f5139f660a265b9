#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/input_file.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/loader.h"
#include "client/cli/progress.h"
#include "client/cli/text.h"
#include "client/cli/tsv_codec.h"
#include "client/cli/unpacked_source.h"
#include "client/cli/write_flags.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr uint64_t kErrorsShownMax = 20;
// Twice as fast as with 16 (docs/benchmarks.md); a session costs kvd 9 KiB for each while it lasts.
constexpr uint32_t kCredits = 64;

constexpr Flag kLoadFlags[] = {
    {"format", '\0', FlagKind::kChoice, "auto|jsonl|tsv|delimited", "auto",
     "auto: by the ending of FILE, then by its first byte ({ is jsonl, else tsv)"},
    {"separator", '\0', FlagKind::kText, "S", "",
     "what ends the key, for delimited, which it implies; \\t and \\xNN are understood"},
    {"max_line", '\0', FlagKind::kBytes, "BYTES", "512m",
     "longer lines are bad ones; a load takes up to 4 times the memory of its longest one (tsv and "
     "delimited 2, jsonl 3, with base64 4) and some 32 MiB; suffixes k, m, g, t"},
    kTtlFlag,
    kExpireAtFlag,
};

// How to read FILE, or nothing after having reported what is wrong with the flags.
std::optional<Loader::Options> OptionsOf(Invocation& run, const std::string& path) {
  const std::string& word = run.flags().Text("format");
  const std::string& separator = run.flags().Text("separator");
  const std::optional<WriteOptions> write = WriteOptionsOf(run, path);
  if (!write.has_value()) return std::nullopt;
  Loader::Options options;
  options.ttl = write->ttl;
  options.expiry_unix_us = write->expiry_unix_us;
  options.format = FormatOfWord(word);
  if (separator.empty() && run.flags().IsSet("separator")) {
    run.Fail(path, UsageFailure("--separator is empty; give what ends the key, such as "
                                "--separator=,"));
    return std::nullopt;
  }
  if (!separator.empty()) {
    if (word != "delimited" && word != "auto") {
      run.Fail(path, UsageFailure(absl::StrCat("--separator does not go with --format=", word,
                                               "; leave one of them out")));
      return std::nullopt;
    }
    options.format = ItemFormat::kDelimited;
    if (const absl::Status status = UnescapeTsvField(separator, 0, options.separator);
        !status.ok()) {
      run.Fail(path, UsageFailure(absl::StrCat("--separator: ", status.message())));
      return std::nullopt;
    }
  } else if (options.format == ItemFormat::kDelimited) {
    run.Fail(path, UsageFailure("--format=delimited needs a separator; give --separator=S"));
    return std::nullopt;
  }
  if (!options.format.has_value()) options.format = FormatOfName(path);
  return options;
}

// Prints the first few; the rest is in the summary.
class ErrorLines {
 public:
  ErrorLines(Invocation& run, std::string_view path, Progress& progress)
      : run_(run), path_(path), progress_(progress) {}

  void Add(uint64_t line_number, std::string_view reason) {
    if (++count_ > kErrorsShownMax) return;
    progress_.Clear();
    run_.Fail(path_, {ExitCode::kUsage, absl::StrCat("line ", line_number, ": ",
                                                     std::string(reason), "; not loaded")});
    if (count_ == kErrorsShownMax) run_.Note(path_, "further bad lines are only counted");
  }

 private:
  Invocation& run_;
  const std::string_view path_;
  Progress& progress_;
  uint64_t count_ = 0;
};

// Once for all of them: what the first was told holds for the rest.
void TellOfNoRoom(Invocation& run, std::string_view path, const Loader& loader) {
  const uint64_t count = loader.counts().no_room;
  if (count == 0) return;
  const Failure failure = StoreFailure(loader.no_room().status, run.command().name);
  const std::string which =
      count == 1 ? absl::StrCat("line ", loader.no_room().line_number, " was refused: ")
                 : absl::StrCat(count, " lines were refused, the first of them line ",
                                loader.no_room().line_number, ": ");
  run.Fail(path, {failure.code, which + failure.text});
}

void Summarize(Invocation& run, std::string_view path, const LoadCounts& counts,
               int64_t elapsed_ns) {
  run.Note(path,
           absl::StrCat(counts.items, counts.items == 1 ? " item (" : " items (",
                        FormatBytes(counts.item_bytes), ") in ",
                        FormatPace(counts.items, counts.item_bytes, elapsed_ns), ", ",
                        counts.bad_lines, counts.bad_lines == 1 ? " bad line, " : " bad lines, ",
                        counts.refused, " refused",
                        counts.expired > 0 ? absl::StrCat(", ", counts.expired, " expired") : ""));
  if (run.format() != OutputFormat::kJson) return;
  run.console().out.Write(absl::StrCat(
      "{\"items\":", counts.items, ",\"bytes\":", counts.item_bytes, ",\"bad_lines\":",
      counts.bad_lines, ",\"refused\":", counts.refused, ",\"expired\":", counts.expired,
      ",\"seconds\":", absl::StrFormat("%.6f", static_cast<double>(elapsed_ns) / 1e9), "}\n"));
}

ExitCode Load(Invocation& run, KeyValueStore& store, const std::string& path,
              ByteSource& source_as_given, std::optional<uint64_t> bytes_total,
              Loader::Options options) {
  const InterruptGuard guard;
  UnpackedSource source(source_as_given);
  if (const std::string unpack(source.Unpacker()); !unpack.empty()) {
    return run.Fail(path, UsageFailure(absl::StrCat(
                              "is compressed, nothing was loaded; unpack it on the way: ", unpack,
                              " ", path == "-" ? "FILE" : Quoted(path), " | kvcli load -")));
  }
  // Lines of anything hold a TAB now and then; those of JSON lines are bad ones all by themselves.
  const bool may_be_tsv = !options.format.has_value() || *options.format == ItemFormat::kTsv;
  if (may_be_tsv && run.flags().Text("format") == "auto") {
    if (const std::string found(source.NotText()); !found.empty()) {
      return run.Fail(path, UsageFailure(absl::StrCat(
                                "begins with ", found,
                                ", so it is no text and nothing was loaded; "
                                "if its lines are items all the same, add --format=tsv")));
    }
  }
  Progress progress(run.console(), absl::StrCat("load ", path), true);
  ErrorLines errors(run, path, progress);
  LineReader lines(source, run.flags().Count("max_line"));
  Loader loader(store, lines, std::move(options));
  const absl::Status status = loader.Run(
      [&errors](uint64_t line_number, std::string_view reason) { errors.Add(line_number, reason); },
      [&](const LoadCounts& counts) {
        progress.Update(
            {counts.items, counts.bad_lines + counts.refused, counts.bytes_taken, bytes_total});
        return !run.console().interrupted();
      });
  progress.Clear();
  const LoadCounts& counts = loader.counts();
  ExitCode exit = counts.refused > 0     ? ExitCode::kRefused
                  : counts.bad_lines > 0 ? ExitCode::kUsage
                                         : ExitCode::kDone;
  if (absl::IsCancelled(status)) {
    run.Note(path, absl::StrCat("interrupted after line ", loader.line_number()));
    exit = ExitCode::kInterrupted;
  } else if (!status.ok()) {
    const Failure cause =
        loader.input_failed() ? LocalIoFailure(status) : StoreFailure(status, run.command().name);
    exit = run.Fail(path, {cause.code, absl::StrCat("stopped at line ", loader.line_number(), ": ",
                                                    cause.text)});
  }
  TellOfNoRoom(run, path, loader);
  Summarize(run, path, counts, progress.elapsed_ns());
  return exit;
}

ExitCode RunLoad(Invocation& run) {
  const std::string& path = run.arguments().front();
  std::optional<Loader::Options> options = OptionsOf(run, path);
  if (!options.has_value()) return ExitCode::kUsage;
  if (path == "-" && run.console().in_is_commands) {
    return run.Fail(path, UsageFailure("commands come from standard input, so no items can; give a "
                                       "file"));
  }
  UniqueFd file;
  if (path != "-") {
    absl::StatusOr<UniqueFd> opened = OpenForReading(path);
    if (!opened.ok()) {
      const absl::Status status(
          opened.status().code(),
          absl::StrCat(opened.status().message(), "; give a file that can be read, or -"));
      return run.Fail(path, LocalIoFailure(status));
    }
    file = *std::move(opened);
  }
  KeyValueStore* store = run.Store(kCredits);
  if (store == nullptr) return run.connect_failure();
  if (path == "-") {
    return Load(run, *store, path, run.console().in, std::nullopt, *std::move(options));
  }
  FdSource source(file.get(), path);
  return Load(run, *store, path, source, KnownBytes(file.get()), *std::move(options));
}

}  // namespace

constinit const Command kLoadCommand = {
    .name = "load",
    .arguments = "FILE|-",
    .summary = "store the items of a file, or of standard input",
    .details =
        "An item a line; blank lines count for nothing; lines may end with \\r\\n.\n"
        "  jsonl      {\"key\":\"...\",\"value\":\"...\"}; key_base64, value_base64, key_hex, "
        "value_hex\n"
        "             for any bytes; \"expiry_unix_us\":N; \"user_flags\":N; others are passed "
        "over\n"
        "  tsv        KEY, TAB, VALUE; \\t \\n \\r \\\\ \\xNN stand for bytes; then, where there "
        "are\n"
        "             any, TAB, expiry_unix_us=N, and TAB, user_flags=N\n"
        "  delimited  the key is what comes before the first S, the value all that follows it\n"
        "What dump writes is understood. An item that has expired since is counted and not\n"
        "stored. Of several lines with one key the last one counts. --ttl (from when the item is\n"
        "stored) and --expire_at are for lines that do not say when their item expires.\n"
        "A bad line is reported with its number and counted, and the rest is loaded; of many,\n"
        "the first 20 are shown. Items for which the server has no room are told of once, at the\n"
        "end. A summary goes to standard error, and with -w json also to standard output.\n"
        "Exit status 5: the server refused some items; 2: some lines were bad; 7: FILE cannot be\n"
        "read; 3, 4, 6: the server was lost on the way, and the load stopped there; 130: Ctrl-C.\n"
        "What was loaded until then stays. Compressed files are refused: see the examples; and "
        "what\n"
        "is taken for tsv without --format=tsv, and has a byte of zero or is not UTF-8 in its\n"
        "first 4 KiB.\n",
    .examples =
        "kvcli load cities.tsv\n"
        "zcat backup.jsonl.gz | kvcli load -\n"
        "kvcli load sessions.tsv --ttl=30m\n"
        "kvcli load UnicodeData.txt --format=delimited --separator=';'\n",
    .flags = kLoadFlags,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = RunLoad,
};

}  // namespace kvd::cli
