#include "tests/softroce/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tests/softroce/host_link.h"

namespace kvd::softroce {
namespace {

constexpr rlim_t kOpenFiles = 65'536;
constexpr size_t kRelayBuffer_bytes = 65'536;
constexpr size_t kPipeMax_bytes = 1 << 20;  // fs.pipe-max-size
constexpr time_t kLate_s = 40;              // for the words about a command whose time was up

// A pipe from the command to one of the lines to the host.
struct Stream {
  HostLine line = HostLine::kOutput;
  int read_fd = -1;
  int write_fd = -1;
  uint64_t bytes = 0;
};

Stream OpenStream(HostLine line) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) Fail("cannot make a pipe");
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return {.line = line, .read_fd = fds[0], .write_fd = fds[1]};
}

// Passes on one buffer of what is there now. Whether there may be more. Closes the stream at its
// end.
bool Relay(Stream& stream) {
  std::array<char, kRelayBuffer_bytes> buffer;
  if (stream.read_fd < 0) return false;
  const ssize_t count = read(stream.read_fd, buffer.data(), buffer.size());
  if (count < 0) return false;
  if (count == 0) {
    close(stream.read_fd);
    stream.read_fd = -1;
    return false;
  }
  stream.bytes += static_cast<uint64_t>(count);
  SendToHost(stream.line, {buffer.data(), static_cast<size_t>(count)});
  return true;
}

// Passes on what the command left in the pipe. No more than a pipe can hold: processes that it left
// behind may go on writing for ever.
void Drain(Stream& stream) {
  for (size_t relayed = 0; relayed < kPipeMax_bytes && Relay(stream);) {
    relayed += kRelayBuffer_bytes;
  }
}

int ExitStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Reaps whatever ended, as the first process must. Whether `wanted` was among it; its status then.
bool Reap(pid_t wanted, int* exit_status) {
  bool found = false;
  int wait_status = 0;
  for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (pid != wanted) continue;
    *exit_status = ExitStatus(wait_status);
    found = true;
  }
  return found;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The console as the controlling terminal, of the size that the host's has.
void TakeTerminal(const std::string& size) {
  const int fd = open("/dev/hvc0", O_RDWR | O_CLOEXEC);
  winsize window = {};
  sscanf(size.c_str(), "%hux%hu", &window.ws_row, &window.ws_col);
  ioctl(fd, TIOCSWINSZ, &window);
  ioctl(fd, TIOCSCTTY, 0);
  for (int standard = 0; standard <= 2; ++standard) dup2(fd, standard);
}

time_t Now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Becomes the command; in a child process.
[[noreturn]] void Execute(const GuestConfig& config, const std::vector<std::string>& words) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  const rlimit open_files = {kOpenFiles, kOpenFiles};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  setrlimit(RLIMIT_NOFILE, &open_files);
  const std::string directory = config.One("directory");
  if (chdir(directory.c_str()) != 0) {
    dprintf(STDERR_FILENO, "guest: cannot enter %s: %s\n", directory.c_str(), strerror(errno));
    _exit(127);
  }
  std::vector<char*> environment = Pointers(config.All("environment"));
  environ = environment.data();
  execvp(words.front().c_str(), Pointers(words).data());
  dprintf(STDERR_FILENO, "guest: cannot run %s: %s\n", words.front().c_str(), strerror(errno));
  _exit(127);
}

pid_t Fork() {
  const pid_t pid = fork();
  if (pid < 0) Fail("cannot fork");
  if (pid == 0) setsid();
  return pid;
}

// Relays until the process ended, and then what it still left in the pipes. Its exit status, or
// nothing if that took until `deadline_s`.
std::optional<int> RelayUntilEnd(pid_t pid, time_t deadline_s, int child_signal_fd, Stream& output,
                                 Stream& errors) {
  int exit_status = 0;
  do {
    const time_t left_s = deadline_s - Now_s();
    if (left_s <= 0) return std::nullopt;
    std::array<pollfd, 3> waits = {
        {{child_signal_fd, POLLIN, 0}, {output.read_fd, POLLIN, 0}, {errors.read_fd, POLLIN, 0}}};
    poll(waits.data(), waits.size(), static_cast<int>(std::min<time_t>(left_s, 1000) * 1000));
    if (waits[0].revents != 0) {
      signalfd_siginfo ignored;
      if (read(child_signal_fd, &ignored, sizeof(ignored)) < 0) Fail("cannot read a signal");
    }
    Relay(output);
    Relay(errors);
  } while (!Reap(pid, &exit_status));
  Drain(output);
  Drain(errors);
  return exit_status;
}

}  // namespace

int RunSetup(const GuestConfig& config) {
  const std::vector<std::string>& words = config.All("setup");
  if (words.empty()) return 0;
  const pid_t pid = Fork();
  if (pid == 0) Execute(config, words);
  int wait_status = 0;
  while (waitpid(pid, &wait_status, 0) != pid) {
  }
  return ExitStatus(wait_status);
}

CommandResult RunCommand(const GuestConfig& config) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  const int child_signal_fd = signalfd(-1, &child, SFD_CLOEXEC);
  if (child_signal_fd < 0) Fail("cannot watch for the command's end");
  Stream output = OpenStream(HostLine::kOutput);
  Stream errors = OpenStream(HostLine::kErrors);
  const std::string terminal = config.One("terminal");
  const pid_t pid = Fork();
  if (pid == 0) {
    if (terminal.empty()) {
      dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
      dup2(output.write_fd, STDOUT_FILENO);
      dup2(errors.write_fd, STDERR_FILENO);
    } else {
      TakeTerminal(terminal);
    }
    Execute(config, config.All("argument"));
  }
  const time_t deadline_s = Now_s() + atol(config.One("timeout").c_str());
  const std::optional<int> exit_status =
      RelayUntilEnd(pid, deadline_s, child_signal_fd, output, errors);
  if (!exit_status.has_value()) {
    const pid_t late = Fork();
    if (late == 0) {
      dup2(errors.write_fd, STDOUT_FILENO);
      Execute(config, config.All("late"));
    }
    RelayUntilEnd(late, Now_s() + kLate_s, child_signal_fd, output, errors);
  }
  return {exit_status.has_value(), exit_status.value_or(0), output.bytes, errors.bytes};
}

}  // namespace kvd::softroce
