#include "tests/support/kvd_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"

namespace kvd::test {
namespace {

bool SomebodyListens(const std::string& path) {
  UniqueFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

KvdProcess::~KvdProcess() { Kill(); }

std::string KvdProcess::Log() const {
  std::ifstream file(log_path());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::Status KvdProcess::Start(const std::string& binary, const std::vector<std::string>& flags) {
  Kill();
  std::vector<std::string> words = {binary, "--shm=" + socket_path()};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (pid_ == 0) {
    const int log = open(log_path().c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    if (log >= 0) {
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
    }
    execv(argv[0], argv.data());
    std::fprintf(stderr, "exec %s: %s\n", argv[0], std::strerror(errno));
    _exit(127);
  }
  for (int tries = 0; tries < 30'000; ++tries) {
    if (SomebodyListens(socket_path())) return absl::OkStatus();
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = 0;
      return absl::InternalError(absl::StrCat("kvd ended instead of serving: ", Log()));
    }
    usleep(1000);
  }
  Kill();
  return absl::DeadlineExceededError(absl::StrCat("kvd does not serve: ", Log()));
}

int KvdProcess::Reap() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void KvdProcess::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  Reap();
}

int KvdProcess::Terminate() {
  if (pid_ == 0) return -1;
  kill(pid_, SIGTERM);
  return Reap();
}

void KvdProcess::Stop() const {
  Signal(SIGSTOP);
  // The signal goes to one thread, which stops the others once it runs.
  waitpid(pid_, nullptr, WUNTRACED);
}

void KvdProcess::Continue() const { Signal(SIGCONT); }

void KvdProcess::Signal(int number) const { kill(pid_, number); }

}  // namespace kvd::test
