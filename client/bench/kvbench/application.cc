#include "client/bench/kvbench/application.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/bench/kvbench/all_sizes.h"
#include "client/bench/kvbench/help.h"
#include "client/bench/kvbench/hgrm.h"
#include "client/bench/kvbench/kvd_store.h"
#include "client/bench/kvbench/report.h"
#include "client/cli/failure.h"
#include "client/cli/interrupt.h"
#include "client/cli/output_file.h"
#include "client/cli/progress.h"
#include "common/base/build_info.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::bench {
namespace {

using cli::ExitCode;

// Whether GETs were asked for items that should be there, and none was.
bool AllWereMissing(const Tally& sum) {
  const auto count = [&sum](Operation kind) { return sum.operations[static_cast<size_t>(kind)]; };
  const uint64_t gets = count(Operation::kGet) + count(Operation::kReadModifyWrite);
  return sum.not_found > 0 && sum.not_found + sum.misses >= gets;
}

class BenchRun {
 public:
  BenchRun(const Program& program, cli::Console& console, Options options)
      : program_(program), console_(console) {
    report_.program = absl::StrCat(ToAbsl(program.name), " ", ToAbsl(Version()));
    report_.commit = Commit();
    report_.options = std::move(options);
  }

  ExitCode Execute() {
    const absl::StatusOr<StoreMaker> stores = program_.stores(report_.options);
    if (!stores.ok()) return Fail("flags", cli::UsageFailure(ToStd(stores.status().message())));
    // Before the run, which may be a long one, rather than at its end.
    if (const ExitCode opened = OpenFiles(); opened != ExitCode::kDone) return opened;
    report_.target = program_.target(report_.options);
    report_.machine = ThisMachine();
    report_.rdma = RdmaPathTo(report_.target, report_.options.client.rdma_device);
    std::vector<Workload> runs = {report_.options.workload};
    ExitCode exit = report_.options.all_sizes ? PlanRuns(*stores, runs) : ExitCode::kDone;
    for (size_t i = 0; i < runs.size() && exit == ExitCode::kDone; ++i) {
      exit = Measure(runs[i], *stores);
    }
    const ExitCode written = WriteFiles();
    return exit == ExitCode::kDone ? written : exit;
  }

 private:
  bool ForPeople() const { return report_.options.json != "-"; }

  void Print(std::string_view text) {
    if (!ForPeople()) return;
    console_.out.Write(text);
    console_.out.Flush();
  }

  // Those of --all, as many as the store has room for; says what they need before the first begins.
  ExitCode PlanRuns(const StoreMaker& stores, std::vector<Workload>& runs) {
    absl::StatusOr<std::unique_ptr<Store>> control = stores(kControl);
    if (!control.ok()) return Fail("connect", Explain({"connect", control.status()}));
    const absl::StatusOr<Store::Statistics> statistics = (*control)->Stats();
    if (!statistics.ok())
      return Fail("statistics of the server", Explain({"", statistics.status()}));
    uint64_t memory_bytes = 0;  // not every store has a limit
    if (!absl::SimpleAtoi(StatisticOf(*statistics, "memory_bytes"), &memory_bytes))
      memory_bytes = 0;
    absl::StatusOr<SizesPlan> plan = PlanAllSizes(report_.options.workload, memory_bytes);
    if (!plan.ok()) return Fail("all", cli::StoreFailure(plan.status()));
    Note("all", absl::StrCat(
                    "needs about ", FormatBytes(plan->memory_bytes), " of the server's memory",
                    memory_bytes == 0 ? "" : absl::StrCat(", which is ", FormatBytes(memory_bytes)),
                    ": up to ", FormatBytes(plan->value_bytes),
                    " of values of each size, and 16 keys at least"));
    runs = std::move(plan->runs);
    return ExitCode::kDone;
  }

  ExitCode Measure(const Workload& work, const StoreMaker& stores) {
    RunResult result;
    {
      const cli::InterruptGuard guard;
      cli::Progress progress(console_, absl::StrCat("load ", work.keys, " items"), ForPeople());
      result =
          Run(work, stores,
              {.interrupted = console_.interrupted, .loading = [&](uint64_t items) {
                 progress.Update({.items = items, .bytes_done = items, .bytes_total = work.keys});
               }});
    }
    if (!result.measured) return ExitOf(result);
    report_.runs.push_back({work, std::move(result), std::nullopt});
    Report::Run& run = report_.runs.back();
    const bool over = run.result.interrupted || run.result.failure.has_value();
    if (report_.rdma.has_value() && report_.options.floor != Floor::kOff && !over) {
      run.floor = MeasureFloor(report_.options, *report_.rdma, run.result);
    }
    if (report_.runs.size() == 1) Print(HeadText(report_) + TableHead());
    Print(TableRows(run));
    if (!report_.options.all_sizes || over) Print(absl::StrCat("\n", FiguresText(run)));
    if (AllWereMissing(run.result.sum)) {
      Note("get",
           work.load ? "every GET found nothing, though all items were stored; see whether kvd has "
                       "evicted them for want of memory, or somebody deletes them"
                     : "every GET found nothing; leave out --load=false, or give the --keys and "
                       "--key_size of the run that stored the items");
    }
    return ExitOf(run.result);
  }

  cli::Failure Explain(const RunFailure& failure) const {
    if (failure.is_local) return cli::LocalIoFailure(failure.status);
    if (failure.asked == "connect") {
      return cli::ConnectFailure(report_.options.server, failure.status);
    }
    return cli::StoreFailure(failure.status);
  }

  ExitCode ExitOf(const RunResult& result) {
    if (result.failure.has_value()) {
      const RunFailure& failure = *result.failure;
      return Fail(failure.asked, Explain(failure));
    }
    return result.interrupted ? ExitCode::kInterrupted : ExitCode::kDone;
  }

  // Opens --json, and sees whether files can be made where --hgrm is to have them.
  ExitCode OpenFiles() {
    const Options& options = report_.options;
    if (!options.json.empty() && options.json != "-") {
      absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Create(options.json);
      if (!file.ok()) return Fail("json", cli::LocalIoFailure(file.status()));
      json_ = *std::move(file);
    }
    if (!options.hgrm.empty()) {
      const auto probe = cli::OutputFile::Create(options.hgrm + ".hgrm");
      if (!probe.ok()) return Fail("hgrm", cli::LocalIoFailure(probe.status()));
    }
    return ExitCode::kDone;
  }

  absl::Status WriteJson() {
    const std::string text = JsonText(report_);
    if (json_ == nullptr) {
      console_.out.Write(text);
      return absl::OkStatus();
    }
    json_->sink().Write(text);
    return json_->Commit();
  }

  ExitCode WriteFiles() {
    if (report_.runs.empty()) return ExitCode::kDone;
    if (!report_.options.json.empty()) {
      const absl::Status status = WriteJson();
      if (!status.ok()) return Fail("json", cli::LocalIoFailure(status));
    }
    if (report_.options.hgrm.empty()) return ExitCode::kDone;
    for (size_t i = 0; i < kOperations; ++i) {
      // With several sizes, of all of them: each has its own file.
      for (const Report::Run& run : report_.runs) {
        const LatencyHistogram& times = run.result.sum.times[i];
        if (times.count() == 0) continue;
        const std::string size =
            report_.options.all_sizes ? absl::StrCat(".", run.workload.value_sizes.text()) : "";
        const std::string path = absl::StrCat(
            report_.options.hgrm, ".", ToAbsl(NameOf(static_cast<Operation>(i))), size, ".hgrm");
        if (const absl::Status status = WriteFile(path, HgrmText(times)); !status.ok()) {
          return Fail("hgrm", cli::LocalIoFailure(status));
        }
      }
    }
    return ExitCode::kDone;
  }

  static absl::Status WriteFile(const std::string& path, const std::string& text) {
    KVD_ASSIGN_OR_RETURN(const std::unique_ptr<cli::OutputFile> file,
                         cli::OutputFile::Create(path));
    file->sink().Write(text);
    return file->Commit();
  }

  ExitCode Fail(std::string_view asked, const cli::Failure& failure) {
    console_.out.Flush();
    console_.err.Write(cli::FailureLine(absl::StrCat(ToAbsl(program_.name), ": "), asked, failure));
    console_.err.Flush();
    return failure.code;
  }

  // What is no failure, and to be known.
  void Note(std::string_view about, std::string_view text) {
    Fail(about, {ExitCode::kDone, std::string(text)});
  }

  const Program& program_;
  cli::Console& console_;
  Report report_;
  std::unique_ptr<cli::OutputFile> json_;  // null: standard output, or none
};

ExitCode FailUsage(const Program& program, cli::Console& console, std::string_view wrong) {
  const bool advised = wrong.find("; ") != std::string_view::npos;
  const cli::Failure failure = {
      ExitCode::kUsage,
      advised ? std::string(wrong)
              : absl::StrCat(ToAbsl(wrong), "; see '", ToAbsl(program.name), " --help'")};
  console.err.Write(cli::FailureLine(absl::StrCat(ToAbsl(program.name), ": "), "flags", failure));
  console.err.Flush();
  return failure.code;
}

ExitCode Execute(const Program& program, cli::Console& console,
                 std::span<const std::string> arguments) {
  cli::FlagValues flags;
  flags.Declare(BenchFlags());
  if (const absl::Status status = flags.TakeEnvironment(console.environment); !status.ok()) {
    return FailUsage(program, console, ToStd(status.message()));
  }
  const auto rest = flags.TakeArguments(arguments, {});
  if (!rest.ok()) return FailUsage(program, console, ToStd(rest.status().message()));
  if (flags.Switch("help")) {
    console.out.Write(HelpText(program.name, program.summary));
    return ExitCode::kDone;
  }
  if (flags.Switch("version")) {
    console.out.Write(VersionText(program.name));
    return ExitCode::kDone;
  }
  if (flags.IsSet("completion")) {
    console.out.Write(CompletionText(program.name, flags.Text("completion")));
    return ExitCode::kDone;
  }
  if (!rest->empty()) {
    return FailUsage(program, console,
                     absl::StrCat("\"", rest->front(),
                                  "\" is one argument too many; all that it takes are flags"));
  }
  absl::StatusOr<Options> options = OptionsOf(flags);
  if (!options.ok()) return FailUsage(program, console, ToStd(options.status().message()));
  return BenchRun(program, console, *std::move(options)).Execute();
}

}  // namespace

ExitCode RunProgram(const Program& program, cli::Console& console,
                    std::span<const std::string> arguments) {
  const ExitCode exit = Execute(program, console, arguments);
  console.out.Flush();
  if (console.out.ok()) return exit;
  if (console.out.error_number() == EPIPE) return ExitCode::kBrokenPipe;
  const cli::Failure failure =
      cli::LocalIoFailure(ErrnoStatus(console.out.error_number(), "cannot write standard output"));
  console.err.Write(cli::FailureLine(absl::StrCat(ToAbsl(program.name), ": "), "", failure));
  console.err.Flush();
  return failure.code;
}

}  // namespace kvd::bench
