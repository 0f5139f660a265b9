#include "client/bench/kvbench/crew.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

constexpr size_t kSlotOffset = (sizeof(RunControl) + 4095) / 4096 * 4096;
constexpr size_t kSlotBytes = (sizeof(ClientSlot) + 4095) / 4096 * 4096;

// Ctrl-C reaches every process of a group, and any thread; the one that leads the run answers to
// it.
sigset_t LeadersSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

RunControl& Crew::control() const { return *reinterpret_cast<RunControl*>(memory_.base()); }

ClientSlot& Crew::slot(size_t index) const {
  return *reinterpret_cast<ClientSlot*>(memory_.base() + kSlotOffset + index * kSlotBytes);
}

absl::StatusOr<Crew> Crew::Start(const Options& options, const Body& body) {
  KVD_ASSIGN_OR_RETURN(
      MappedMemory memory,
      MappedMemory::Map({.length_bytes = kSlotOffset + options.clients * kSlotBytes,
                         .protection = PROT_READ | PROT_WRITE,
                         .flags = MAP_SHARED | MAP_NORESERVE}));
  Crew crew(std::move(memory), options.clients);
  const pid_t leader = ::getpid();
  sigset_t before;
  const sigset_t signals = LeadersSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  absl::Status status;
  for (size_t i = 0; i < options.clients && status.ok(); ++i) {
    if (!options.processes) {
      try {
        crew.threads_.emplace_back(body, i, std::ref(crew.control()), std::ref(crew.slot(i)));
      } catch (const std::system_error& error) {
        status = ErrnoStatus(error.code().value(), absl::StrCat("cannot start client thread ", i));
      }
      continue;
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != leader) ::_exit(1);  // it is gone already
      body(i, crew.control(), crew.slot(i));
      ::_exit(0);
    }
    if (pid < 0) status = ErrnoStatus(absl::StrCat("cannot start client process ", i));
    if (pid > 0) crew.processes_.push_back(pid);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return crew;
}

Crew::~Crew() {
  if (memory_.base() == nullptr) return;
  control().stop.store(true);
  control().phase.store(Phase::kEnd);
  for (std::thread& thread : threads_) thread.join();
  for (const pid_t pid : processes_) {
    if (pid != 0) ::waitpid(pid, nullptr, 0);
  }
}

void Crew::NoticeDead() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    int state = 0;
    if (processes_[i] == 0 || ::waitpid(processes_[i], &state, WNOHANG) != processes_[i]) continue;
    const pid_t pid = std::exchange(processes_[i], 0);
    if (slot(i).failed.load(std::memory_order_acquire)) continue;
    slot(i).died = true;
    slot(i).Fail(
        "client process",
        absl::InternalError(absl::StrCat(
            "process ", pid, WIFSIGNALED(state) ? " was ended by signal " : " ended with status ",
            WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state),
            "; the kernel log says whether memory ran out")));
  }
}

}  // namespace kvd::bench
