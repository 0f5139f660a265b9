#include "tests/e2e/kvd_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "common/base/check.h"

namespace kvd::test {
namespace {

constexpr const char* kKvdBinary = "server/kvd";  // in the runfiles

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  off_t at = 0;
  for (ssize_t got; (got = pread(fd, buffer, sizeof(buffer), at)) > 0; at += got) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

KvdProcess::KvdProcess(const Options& options)
    : out_(memfd_create("stdout", 0)), err_(memfd_create("stderr", 0)) {
  // An abstract address that the kernel chooses: nothing to remove, and nobody else's.
  notify_.Reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KVD_CHECK(bind(notify_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) == 0);
  socklen_t length = sizeof(address);
  KVD_CHECK(getsockname(notify_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  notify_path_.assign(address.sun_path, length - offsetof(sockaddr_un, sun_path));
  notify_path_[0] = '@';

  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), kKvdBinary);
  std::vector<std::string> environment = options.environment;
  environment.push_back("PATH=/usr/bin:/bin");
  environment.push_back("NOTIFY_SOCKET=" + notify_path_);
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  pid_ = fork();
  KVD_CHECK(pid_ >= 0);
  if (pid_ != 0) return;
  dup2(out_.get(), STDOUT_FILENO);
  dup2(options.error_fd >= 0 ? options.error_fd : err_.get(), STDERR_FILENO);
  close_range(3, ~0u, 0);
  if (options.descriptors_max != 0) {
    const rlimit limit{options.descriptors_max, options.descriptors_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (options.pending_signal != 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, options.pending_signal);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    kill(getpid(), options.pending_signal);
  }
  execve(kKvdBinary, argv.data(), envp.data());
  _exit(127);
}

KvdProcess::~KvdProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool KvdProcess::WaitReady() {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  KVD_CHECK(process.valid());
  for (;;) {
    pollfd fds[] = {{notify_.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
    poll(fds, 2, -1);
    ReadNotifications();
    if (notifications_.find("READY=1") != std::string::npos) return true;
    if (fds[1].revents != 0) return false;
  }
}

void KvdProcess::ReadNotifications() {
  char buffer[4096];
  for (ssize_t got; (got = recv(notify_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;) {
    notifications_.append(buffer, static_cast<size_t>(got)).append("\n");
  }
}

void KvdProcess::Signal(int signal) const { KVD_CHECK(kill(pid_, signal) == 0); }

Ended KvdProcess::Wait() {
  int status = 0;
  KVD_CHECK(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  ReadNotifications();
  Ended ended;
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.out = ReadAll(out_.get());
  ended.err = ReadAll(err_.get());
  return ended;
}

Ended RunKvd(const std::vector<std::string>& arguments) { return KvdProcess(arguments).Wait(); }

}  // namespace kvd::test
