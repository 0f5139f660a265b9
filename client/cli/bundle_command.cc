// bundle: what a server and this machine are like, in one file for somebody who helps.
#include <sys/stat.h>
#include <sys/utsname.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/bundle.h"
#include "client/cli/commands.h"
#include "client/cli/devices_text.h"
#include "client/cli/doctor_machine.h"
#include "client/cli/doctor_perf.h"
#include "client/cli/doctor_report.h"
#include "client/cli/help_text.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/perf_machine.h"
#include "client/cli/redaction.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/transport/shm/default_path.h"
#include "common/transport/verbs/device_info.h"

namespace kvd::cli {
namespace {

constexpr Flag kBundleFlags[] = {
    {"perf", '\0', FlagKind::kSwitch, "", "false",
     "also what 'kvcli doctor --perf' measures, which takes some seconds", false},
};

std::string Kernel() {
  utsname name{};
  if (::uname(&name) != 0) return "";
  // Not nodename: what a machine is called is nobody's business.
  std::string text =
      absl::StrCat(name.sysname, " ", name.release, " ", name.version, " ", name.machine, "\n");
  // Of what it was started with only what has to do with speed and memory.
  static constexpr const char* kParts[] = {"huge", "cpu", "iommu",  "nohz",        "idle",
                                           "numa", "cma", "pstate", "mitigations", "rcu_"};
  const std::string words = ReadTextFile("/proc/cmdline");
  for (const absl::string_view word : absl::StrSplit(words, absl::ByAnyChar(" \n"))) {
    for (const char* part : kParts) {
      if (!absl::StrContains(word, part)) continue;
      absl::StrAppend(&text, word, "\n");
      break;
    }
  }
  return text;
}

std::string Hugepages() {
  std::string text;
  std::error_code error;
  for (const std::string& folder :
       {std::string("/sys/kernel/mm/hugepages"), std::string("/sys/kernel/mm/transparent_hugepage"),
        std::string("/sys/devices/system/node")}) {
    for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
         !error && at != std::filesystem::end(at); at.increment(error)) {
      const std::string name = at->path().filename().string();
      const bool wanted = name == "nr_hugepages" || name == "free_hugepages" ||
                          name == "resv_hugepages" || name == "surplus_hugepages" ||
                          name == "enabled" || name == "shmem_enabled" || name == "online" ||
                          name == "distance";
      if (at.depth() > 2) at.disable_recursion_pending();
      if (!wanted || !at->is_regular_file(error)) continue;
      absl::StrAppend(&text, at->path().string(), " ", ReadTextFile(at->path().string()));
    }
  }
  return text;
}

std::string Devices() {
  const verbs::DeviceListing listing = verbs::ListDevices();
  std::string text = listing.devices.empty()
                         ? "no RDMA device\n"
                         : FormatDevices(OutputFormat::kSimple, listing.devices);
  for (const auto& [name, count] : ReadPortCounters()) {
    absl::StrAppend(&text, name, " ", count, "\n");
  }
  return text;
}

// Where a target on this machine has its socket; empty: it is reached by RDMA.
std::string SocketPathOf(const std::string& target) {
  constexpr std::string_view kShm = "shm:";
  if (target.empty()) return DefaultSocketPath();
  if (target.starts_with(kShm)) return target.substr(kShm.size());
  return IsRdmaTarget(target) ? "" : target;
}

// Its mode and owner, and the file system it is on.
void AddSocket(const std::string& path, Bundle& bundle) {
  struct stat about {};
  if (path.empty()) return bundle.AddMissing("socket", "the server is reached by RDMA");
  if (::stat(path.c_str(), &about) != 0)
    return bundle.AddMissing("socket", absl::StrCat("there is no ", OneLine(path)));
  bundle.Add("socket", absl::StrFormat("%s mode %04o uid %d gid %d\n%s\n", OneLine(path),
                                       about.st_mode & 07777, about.st_uid, about.st_gid,
                                       MountOf(ReadTextFile("/proc/self/mountinfo"), path)));
}

// The value behind a name at the beginning of one of the lines.
std::string LineOf(std::string_view text, std::string_view name) {
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    if (absl::StartsWith(line, ToAbsl(name)))
      return std::string(absl::StripAsciiWhitespace(line.substr(name.size())));
  }
  return "";
}

// What each thread does: of a kvd that does not answer, what it waits for.
std::string ThreadsOf(const std::string& process) {
  std::string text;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(process + "/task", error);
       !error && at != std::filesystem::end(at); at.increment(error)) {
    const std::string folder = at->path().string();
    const std::string status = ReadTextFile(folder + "/status");
    absl::StrAppend(&text, OneLine(at->path().filename().string()), " ",
                    OneLine(LineOf(status, "Name:")), ": ", LineOf(status, "State:"), ", wchan ",
                    OneLine(ReadTextFile(folder + "/wchan")), ", allowed processors ",
                    LineOf(status, "Cpus_allowed_list:"), ", switches voluntary ",
                    LineOf(status, "voluntary_ctxt_switches:"), " involuntary ",
                    LineOf(status, "nonvoluntary_ctxt_switches:"), ", schedstat ",
                    ReadTextFile(folder + "/schedstat"), ReadTextFile(folder + "/stack"));
  }
  return text;
}

// The pid that a kvd has written beside its socket; empty: there is none, or it may not be seen.
std::string PidBeside(const std::string& socket_path) {
  return socket_path.empty() ? "" : LineOf(ReadTextFile(socket_path + ".lock"), "");
}

// kvd's own, where it runs on this machine and may be looked at.
void AddProcess(const std::string& pid, Bundle& bundle) {
  const std::string process = absl::StrCat("/proc/", pid);
  const bool is_kvd = !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos &&
                      ReadTextFile(process + "/comm").starts_with("kvd");
  const auto add = [&](const char* name, const std::string& text) {
    if (is_kvd) return bundle.Add(name, text);
    bundle.AddMissing(name, "its process is not of this machine, or not to be seen");
  };
  add("kvd's command line", RedactedCommandLine(ReadTextFile(process + "/cmdline")));
  add("kvd's limits", ReadTextFile(process + "/limits"));
  add("kvd's threads", ThreadsOf(process));
}

std::string ValueOf(const KeyValueStore::Statistics& statistics, std::string_view wanted) {
  for (const auto& [name, value] : statistics) {
    if (name == wanted) return value;
  }
  return "";
}

// The same sections, whether it answers or not.
void AddServer(Invocation& run, const std::string& target, const verbs::LocalFacts& facts,
               Bundle& bundle) {
  DoctorReport report;
  CheckThisMachine(run, target, facts, report);
  const absl::StatusOr<KeyValueStore*> store = run.TryStore(target);
  const absl::StatusOr<KeyValueStore::Statistics> statistics =
      store.ok() ? (*store)->Stats() : store.status();
  const std::string place = statistics.ok() ? (*store)->target() : target;
  const std::string socket_path = SocketPathOf(place);
  if (statistics.ok()) {
    report.AddOk("connect", absl::StrCat("to ", place));
  } else {
    report.AddFailed("connect", ConnectFailure(target, statistics.status()));
  }
  // What is wrong with a key is told with its name.
  const auto hide = [&](std::string_view text) {
    return WithoutWords(text, {run.flags().Text("key_file"), run.flags().Text("key_name")});
  };
  bundle.Add("doctor", hide(FormatReport(OutputFormat::kSimple, report)));
  const std::string why = hide(std::string(statistics.status().message()));
  if (statistics.ok()) {
    std::vector<std::pair<std::string, std::string>> shown;
    for (const auto& [name, value] : *statistics) shown.emplace_back(OneLine(name), OneLine(value));
    bundle.Add("stat", FormatAligned(shown));
  } else {
    bundle.AddMissing("stat", why);
  }
  AddSocket(socket_path, bundle);
  const bool is_elsewhere = socket_path.empty();
  AddProcess(is_elsewhere      ? ""
             : statistics.ok() ? ValueOf(*statistics, "pid")
                               : PidBeside(socket_path),
             bundle);
  if (!run.flags().Switch("perf")) return;
  if (!statistics.ok()) return bundle.AddMissing("doctor --perf", why);
  DoctorReport perf;
  const PerfDiagnosis diagnosis = DiagnosePerf(run, target, /*writes=*/false, perf);
  bundle.Add(
      "doctor --perf",
      hide(absl::StrCat(
          FormatReport(OutputFormat::kSimple, perf),
          diagnosis.status.ok() ? "" : absl::StrCat("ended early: ", diagnosis.status.message()))));
}

Bundle Collect(Invocation& run) {
  Bundle bundle;
  const absl::Time now = absl::FromUnixMicros(run.console().clock.NowUnixUs());
  bundle.Add("about", absl::StrCat(VersionText(),
                                   absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
  const std::string target = run.flags().Text("server");
  AddServer(run, target, verbs::GatherLocalFacts(), bundle);
  bundle.Add("devices and port counters", Devices());
  bundle.Add("kernel", Kernel());
  bundle.Add("memory", ReadTextFile("/proc/meminfo"));
  bundle.Add("hugepages and nodes", Hugepages());
  bundle.Add("limits of this process", ReadTextFile("/proc/self/limits"));
  bundle.Add("control group", ReadTextFile("/proc/self/cgroup"));
  const std::string environment = RedactedEnvironment(run.console().environment);
  bundle.Add("environment", environment.empty() ? "no KVCLI_... is set" : environment);
  return bundle;
}

ExitCode RunBundle(Invocation& run) {
  const InterruptGuard guard;
  const absl::Time now = absl::FromUnixMicros(run.console().clock.NowUnixUs());
  const std::string path =
      !run.arguments().empty()
          ? run.arguments().front()
          : absl::FormatTime("kvcli-bundle-%Y%m%dT%H%M%SZ.txt", now, absl::UTCTimeZone());
  const Bundle bundle = Collect(run);
  if (run.console().interrupted()) return ExitCode::kInterrupted;
  const std::string text = bundle.Text();
  if (path == "-") {
    run.console().out.Write(text);
    return ExitCode::kDone;
  }
  if (const absl::Status written = WriteNewPrivateFile(path, text); !written.ok()) {
    Failure failure = LocalIoFailure(written);
    if (absl::IsAlreadyExists(written)) failure.text = "is there already; name another file";
    return run.Fail(path, failure);
  }
  run.console().out.Write(absl::StrCat(OneLine(path), ", for you alone to read (mode 0600), has\n",
                                       bundle.Contents(),
                                       "and no keys or values of items, no keys of clients. It is "
                                       "text: read it before you send it.\n"));
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kBundleCommand = {
    .name = "bundle",
    .arguments = "[FILE|-]",
    .summary = "write a support bundle, without secrets",
    .details =
        "One text file, FILE or kvcli-bundle-TIME.txt here, that must not be there yet, for its\n"
        "owner alone (mode 0600); - for standard output. In it: versions, the doctor's checks "
        "that\n"
        "write nothing, statistics, its socket, RDMA devices with the counters of their ports,\n"
        "kernel, memory, hugepages, limits; where kvd runs on this machine and may be seen, its\n"
        "command line, its limits and what its threads wait for, even if it does not answer. "
        "kvcli\n"
        "says what is in it and what is missing.\n"
        "Not in it: keys and values of items, key files and what they are called, other sessions,\n"
        "this machine's name, the environment but for which KVCLI_... are set. It does have\n"
        "addresses, paths and user ids: read it before you send it.\n",
    .examples =
        "kvcli bundle\n"
        "kvcli bundle fault.txt --perf\n"
        "kvcli bundle - | less\n",
    .flags = kBundleFlags,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunBundle,
};

}  // namespace kvd::cli
