// doctor: is this machine fit for kvd, and does a server do all it should?
#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/doctor_machine.h"
#include "client/cli/doctor_perf.h"
#include "client/cli/doctor_report.h"
#include "client/cli/doctor_server.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "common/base/random.h"
#include "common/transport/verbs/local_check.h"

namespace kvd::cli {
namespace {

constexpr Flag kDoctorFlags[] = {
    {"memory", '\0', FlagKind::kBytes, "BYTES", "64m",
     "the --memory of the kvd that is to run here, besides those that do; suffixes k, m, g, t"},
    {"address", '\0', FlagKind::kText, "ADDRESS", "",
     "the address here on which kvd is to listen, or from which clients are to connect"},
    {"large_values", '\0', FlagKind::kSwitch, "", "false",
     "also values over 8 KiB to a kvd with --evict=lru, which may evict items for them", false},
    {"perf", '\0', FlagKind::kSwitch, "", "false",
     "instead measure GETs, split them up, and say what may slow them down", false},
    {"write", '\0', FlagKind::kSwitch, "", "false",
     "with --perf: put some items first, measure with them and delete them", false},
};

// `named`: somebody said which server; otherwise it is no failure that none is there.
void CheckThatServer(Invocation& run, const std::string& target, bool named, DoctorReport& report) {
  const Clock& clock = run.console().clock;
  const int64_t start_ns = clock.NowMonotonicNs();
  const absl::StatusOr<KeyValueStore*> store = run.TryStore(target);
  if (!store.ok()) {
    report.AddFailed("connect", ConnectFailure(target, store.status()));
    if (named) return;
    report.results.back().outcome = verbs::CheckOutcome::kWarning;
    report.exit = ExitCode::kDone;
    for (const verbs::CheckResult& result : report.results) {
      if (result.outcome == verbs::CheckOutcome::kFailed) report.exit = ExitCode::kNotFound;
    }
    return;
  }
  report.AddOk(
      "connect",
      absl::StrCat("to ", (*store)->target(),
                   absl::StrFormat(" in %.1f ms",
                                   static_cast<double>(clock.NowMonotonicNs() - start_ns) / 1e6)));
  const absl::StatusOr<uint64_t> random = RandomU64FromOs();
  if (!random.ok()) {
    report.AddFailed("random numbers", LocalIoFailure(random.status()));
    return;
  }
  ServerCheckOptions options;
  options.key_prefix = absl::StrCat("kvcli-doctor:", absl::Hex(*random, absl::kZeroPad16), ":");
  options.seed = *random;
  options.large_values = run.flags().Switch("large_values");
  options.interrupted = run.console().interrupted;
  CheckServer(**store, clock, options, report);
}

ExitCode RunPerf(Invocation& run, const std::string& target) {
  if (const auto store = run.TryStore(target); !store.ok()) {
    return run.Fail(target, ConnectFailure(target, store.status()));
  }
  DoctorReport report;
  const PerfDiagnosis diagnosis = DiagnosePerf(run, target, run.flags().Switch("write"), report);
  run.console().out.Write(FormatReport(run.format(), report));
  if (!diagnosis.left_behind.ok()) {
    run.Note("", absl::StrCat("keys may be left: ", diagnosis.left_behind.message(),
                              "; kvcli flush --yes --prefix=", diagnosis.key_prefix));
  }
  if (run.console().interrupted()) return ExitCode::kInterrupted;
  return diagnosis.status.ok() ? ExitCode::kDone : run.FailOfStore("", diagnosis.status);
}

ExitCode RunDoctor(Invocation& run) {
  const bool is_argument = !run.arguments().empty();
  const std::string target = is_argument ? run.arguments().front() : run.flags().Text("server");
  const InterruptGuard guard;
  if (run.flags().Switch("perf")) return RunPerf(run, target);
  if (run.flags().Switch("write")) {
    return run.Fail("", UsageFailure("--write is of --perf; add it"));
  }
  const verbs::LocalFacts facts = verbs::GatherLocalFacts();
  DoctorReport report;
  CheckThisMachine(run, target, facts, report);
  CheckThatServer(run, target, is_argument || run.flags().IsSet("server"), report);
  run.console().out.Write(FormatReport(run.format(), report));
  if (run.console().interrupted()) return ExitCode::kInterrupted;
  if (report.exit == ExitCode::kDone) return ExitCode::kDone;
  return run.Fail("", {report.exit, absl::StrCat(report.failed(), " of ", report.results.size(),
                                                 " checks failed; each says what to do")});
}

}  // namespace

constinit const Command kDoctorCommand = {
    .name = "doctor",
    .arguments = "[SERVER]",
    .summary = "check this machine, and a server if there is one",
    .details =
        "This machine: RDMA devices, permissions, ports, addresses, limits, hugepages. The\n"
        "server, or the one of --server: connects, is admitted, puts values of 64 B to 4 MiB\n"
        "under keys of its own, reads them back, compares each byte, and deletes them. To a kvd\n"
        "that evicts (--evict=lru) nothing over 8 KiB is put, which costs a full one few of its\n"
        "items; --large_values puts the others there as well, and empties much of a small cache\n"
        "that is full. Memory and hugepages are checked for one more kvd of --memory: what a\n"
        "running one has it need not get again. Whatever failed says what was found and what to\n"
        "do. Exit status 0: nothing failed; otherwise that of the first check that did, 1 for\n"
        "this machine's.\n"
        "Over RDMA each time is set against what plain READs of as many bytes, and round trips,\n"
        "took in the same moment; over shared memory against a rule of thumb. A time far above\n"
        "that is a warning.\n"
        "--perf measures GETs of items that are there, of whatever keys, and writes nothing: "
        "cold,\n"
        "with a location cache, of long values, and of keys that are not there. It splits each up\n"
        "into READs, their bytes and verification, sets it against as many plain READs (over\n"
        "shared memory against a copy of the bytes), and names what may slow GETs down, with how\n"
        "that was found: loss, GETs that the server answers, retries, NUMA nodes, 4 KiB pages, "
        "the\n"
        "MTU, overflowing buckets, a frequency governor, a device made in software, a location\n"
        "cache that does not hold, events instead of polling. In an empty store only what finds\n"
        "nothing can be measured; --write puts 64 items of 64 B under keys kvcli-perf:..., and\n"
        "deletes them.\n",
    .examples =
        "kvcli doctor\n"
        "kvcli doctor shm:/run/kvd/kvd.sock\n"
        "kvcli doctor rdma:192.0.2.7:7711 --device=mlx5_0\n"
        "kvcli doctor shm:/run/cache.sock --large_values\n"
        "kvcli doctor --perf rdma:192.0.2.7:7711\n"
        "kvcli doctor --memory=64g --device=mlx5_0 --address=192.0.2.7\n",
    .flags = kDoctorFlags,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunDoctor,
};

}  // namespace kvd::cli
