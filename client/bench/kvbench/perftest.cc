#include "client/bench/kvbench/perftest.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/unique_fd.h"

extern char** environ;

namespace kvd::bench {
namespace {

using Words = std::vector<std::string>;

constexpr int kPortDefault = 18515;  // perftest's

bool IsBandwidth(const std::string& program) { return program.ends_with("_bw"); }

// A program that is ended when this goes.
class ChildProcess {
 public:
  // Its standard output and errors go to `output`; -1: nowhere.
  static absl::StatusOr<ChildProcess> Start(const Words& words, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0) {
      posix_spawn_file_actions_adddup2(&actions, output, 1);
      posix_spawn_file_actions_adddup2(&actions, output, 2);
    } else {
      posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
      posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    }
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int error =
        ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", words[0]));
    return ChildProcess(pid);
  }

  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // Its exit status.
  int Wait() {
    int state = 0;
    ::waitpid(std::exchange(pid_, 0), &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
  }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

struct Finished {
  int exit = 0;
  std::string output;
};

absl::StatusOr<Finished> RunToEnd(const Words& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  KVD_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(words, writer.get()));
  writer = UniqueFd();
  Finished finished;
  std::array<char, 4096> bytes;
  for (ssize_t count; (count = ::read(reader.get(), bytes.data(), bytes.size())) != 0;) {
    if (count > 0) finished.output.append(bytes.data(), static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  finished.exit = child.Wait();
  return finished;
}

// A TCP port that is free now.
int FreePort() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, size) != 0 ||
      ::getsockname(socket.get(), generic, &size) != 0) {
    return kPortDefault;
  }
  return ntohs(address.sin_port);
}

Words CommandOf(const PerftestRun& run, const RdmaEnd& end, int port) {
  Words words = {run.program,
                 "-d",
                 end.device,
                 "-i",
                 absl::StrCat(end.port),
                 "-x",
                 absl::StrCat(end.gid_index),
                 "-s",
                 absl::StrCat(run.bytes),
                 "-n",
                 absl::StrCat(run.iterations),
                 "-F"};
  if (IsBandwidth(run.program) && run.queue_pairs > 1) {
    words.insert(words.end(), {"-q", absl::StrCat(run.queue_pairs)});
  }
  if (port != kPortDefault) words.insert(words.end(), {"-p", absl::StrCat(port)});
  return words;
}

}  // namespace

bool HasProgram(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (::access(absl::StrCat(folder, "/", program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string ServerCommand(const PerftestRun& run) {
  Words words = {run.program, "-s", absl::StrCat(run.bytes), "-n", absl::StrCat(run.iterations),
                 "-F"};
  if (IsBandwidth(run.program) && run.queue_pairs > 1) {
    words.insert(words.end(), {"-q", absl::StrCat(run.queue_pairs)});
  }
  return absl::StrJoin(words, " ");
}

std::optional<PerftestResult> ParsePerftest(std::string_view output, uint64_t bytes,
                                            bool bandwidth) {
  for (const absl::string_view line : absl::StrSplit(ToAbsl(output), '\n')) {
    // #bytes #iterations t_min t_max t_typical ..., or #bytes #iterations peak average rate in
    // millions
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    uint64_t of_bytes = 0;
    double fifth = 0;
    if (words.size() < 5 || !absl::SimpleAtoi(words[0], &of_bytes) || of_bytes != bytes ||
        !absl::SimpleAtod(words[4], &fifth)) {
      continue;
    }
    PerftestResult result;
    (bandwidth ? result.messages_per_second : result.typical_us) = bandwidth ? fifth * 1e6 : fifth;
    return result;
  }
  return std::nullopt;
}

absl::StatusOr<PerftestResult> RunPerftest(const PerftestRun& run) {
  const int port = run.server.has_value() ? FreePort() : kPortDefault;
  std::optional<ChildProcess> server;
  if (run.server.has_value()) {
    KVD_ASSIGN_OR_RETURN(ChildProcess started,
                         ChildProcess::Start(CommandOf(run, *run.server, port), -1));
    server.emplace(std::move(started));
  }
  Words words = CommandOf(run, run.here, port);
  words.push_back(run.host);
  // The other side says nothing when it has begun to listen.
  constexpr int kTries = 50;
  Finished finished;
  for (int i = 0; i < kTries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(server.has_value() ? 200 : 0));
    KVD_ASSIGN_OR_RETURN(finished, RunToEnd(words));
    if (const auto result = ParsePerftest(finished.output, run.bytes, IsBandwidth(run.program))) {
      return *result;
    }
    if (!server.has_value()) break;
  }
  const std::vector<absl::string_view> lines =
      absl::StrSplit(finished.output, '\n', absl::SkipWhitespace());
  return absl::UnavailableError(absl::StrCat(absl::StrJoin(words, " "), " exits with ",
                                             finished.exit, ": ",
                                             lines.empty() ? "" : lines.back()));
}

}  // namespace kvd::bench
