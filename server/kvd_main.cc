// kvd: the daemon.
#include <glog/logging.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"
#include "common/base/memory_reserve.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/socket_claim.h"
#include "common/transport/verbs/local_check.h"
#include "server/admin/admin_address.h"
#include "server/kvd_options.h"
#include "server/kvd_plan.h"
#include "server/kvd_server.h"
#include "server/running_kvd.h"
#include "server/sd_notify.h"
#include "server/session/audit_file.h"
#include "server/stderr_log.h"

namespace kvd {
namespace {

constexpr int kExitCannotStart = 1;
constexpr int kExitUsage = 2;
constexpr int kExitConfig = 78;  // EX_CONFIG of sysexits.h: to start it again would not help

void Print(FILE* to, const std::string& text) { fwrite(text.data(), 1, text.size(), to); }

// One line, whatever the message.
std::string OneLine(const absl::Status& status) {
  std::string line(status.message());
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  return line;
}

// Signals are taken by sigwait on the main thread; every other thread inherits the mask.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// One has come that ends kvd, and waits to be taken.
bool StopAsked() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

// Each client is a descriptor or a few, and RDMA pins the region: as much as this process may have.
void RaiseLimits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_MEMLOCK}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
}

// What flags name and no further try would find otherwise: a socket that is taken may be given up.
absl::Status CheckPaths(const KvdPlan& plan) {
  if (!plan.options.audit_path.empty())
    KVD_RETURN_IF_ERROR(CheckAuditFile(plan.options.audit_path));
  if (plan.options.shm_path.empty()) return absl::OkStatus();
  const absl::Status status = SocketClaim::Check(plan.options.shm_path);
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

int CannotStart(const absl::Status& status) {
  Print(stderr, absl::StrCat("kvd: cannot start: ", OneLine(status), "\n"));
  return absl::IsResourceExhausted(status) ? kExitCannotStart : kExitConfig;
}

int Check(const absl::StatusOr<KvdPlan>& plan) {
  absl::Status status = plan.status();
  if (status.ok()) status = CheckPaths(*plan);
  const bool beside = status.ok() && plan->running.has_value();
  if (status.ok() && !beside && !plan->options.shm_path.empty())
    status = SocketClaim::Check(plan->options.shm_path);
  if (status.ok() && plan->admin.has_value()) {
    const absl::Status listens = ListenAt(*plan->admin).status();
    const bool is_given_up = beside && absl::IsAlreadyExists(listens) &&
                             MayListenAt(plan->running->pid, plan->admin->port());
    if (!listens.ok() && !is_given_up) {
      status = absl::Status(listens.code(), absl::StrCat("--admin: ", listens.message()));
    }
  }
  if (!status.ok()) {
    Print(stderr, absl::StrCat("kvd: --check failed: ", OneLine(status), "\n"));
    return kExitConfig;
  }
  Print(stdout, DescribePlan(*plan));
  for (const verbs::CheckResult& result : plan->checks) {
    if (result.outcome != verbs::CheckOutcome::kFailed) continue;
    Print(stderr, absl::StrCat("kvd: --check failed: ", result.check, ": ", TextOf(result), "\n"));
    return kExitConfig;
  }
  return 0;
}

int Serve(const KvdPlan& plan, const sigset_t& signals) {
  StderrLog log;
  RaiseLimits();
  for (const std::string& warning : plan.warnings) LOG(WARNING) << warning;
  SdNotify("STATUS=starting");
  absl::StatusOr<std::unique_ptr<KvdServer>> server = KvdServer::Start(
      plan,
      // The log's library lives through no exception.
      [](const std::string& line) { WithReserve([&] { LOG(INFO) << line; }); }, StopAsked);
  if (absl::IsCancelled(server.status())) {
    SdNotify("STOPPING=1\nSTATUS=stopped before it served");
    LOG(INFO) << "stopped before it served";
    return 0;
  }
  if (!server.ok()) {
    SdNotify("STATUS=cannot start");
    log.Print(absl::StrCat("kvd: cannot start: ", OneLine(server.status())));
    return kExitCannotStart;
  }
  LOG(INFO) << "kvd " << Version() << " (pid " << getpid() << ") serves " << (*server)->Describe()
            << (plan.rdma_note.empty() ? "" : "; RDMA is not up: " + plan.rdma_note);
  SdNotify("READY=1\nSTATUS=serving " + (*server)->Describe());

  int caught = 0;
  while (sigwait(&signals, &caught) != 0 || caught == SIGHUP) {
    if (caught == SIGHUP) (*server)->Reload();
  }
  LOG(INFO) << strsignal(caught) << ": answering what has come, then ending all sessions";
  SdNotify("STOPPING=1\nSTATUS=ending sessions");
  server->reset();
  LOG(INFO) << "stopped";
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  // First of all: a SIGHUP that comes before kvd could read its files anew has nothing to do, and
  // is not to end it.
  const sigset_t signals = BlockSignals();
  const absl::StatusOr<KvdOptions> options = ParseKvdOptions(arguments);
  if (!options.ok()) {
    Print(stderr, absl::StrCat("kvd: ", OneLine(options.status()), "\n"));
    return kExitUsage;
  }
  if (options->help) {
    Print(stdout, KvdHelp());
    return 0;
  }
  if (options->version) {
    const std::string commit(Commit());
    Print(stdout, absl::StrCat("kvd ", std::string(Version()),
                               commit == "unknown" ? "" : " (commit " + commit + ")", "\n"));
    return 0;
  }
  if (options->check) pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  const absl::StatusOr<KvdPlan> plan = MakeKvdPlan(*options);
  if (options->check) return Check(plan);
  if (!plan.ok()) return CannotStart(plan.status());
  if (const absl::Status paths = CheckPaths(*plan); !paths.ok()) return CannotStart(paths);
  // Now rather than once gigabytes have been taken.
  if (!plan->cannot_listen.empty()) {
    Print(stderr, absl::StrCat("kvd: cannot start: ", plan->cannot_listen, "\n"));
    return kExitCannotStart;
  }
  return Serve(*plan, signals);
}

}  // namespace
}  // namespace kvd

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  try {
    return kvd::Main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    fputs("kvd: out of memory outside of --memory; give this machine more or kvd less\n", stderr);
    return kvd::kExitCannotStart;
  } catch (const std::system_error& error) {
    fprintf(stderr, "kvd: cannot start: no thread: %s; raise the limit of processes (ulimit -u)\n",
            error.what());
    return kvd::kExitCannotStart;
  }
}
