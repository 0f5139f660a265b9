// The claim on a socket path: one holder at a time, and nothing left behind.
#include "common/transport/shm/socket_claim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/transport/shm/lock_owner.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// A process that holds the claim. It can be made one whose main thread has ended while another
// still lives, and so keeps all that it has open: what a killed kvd is while the kernel takes its
// memory back, but for as long as the test likes.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
    REQUIRE(pipe2(taken_, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) Hold(path);
    char ok = 0;
    REQUIRE(read(taken_[0], &ok, 1) == 1);
  }
  ~Holder() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {ends_[0], ends_[1], taken_[0], taken_[1]}) close(fd);
  }

  std::string pid() const { return std::to_string(pid_); }

  void BeginToDie() const {
    Tell();
    while (LookAtLockOwner(pid()) != LockOwner::kEnds) sched_yield();
  }
  void Die() const { Tell(); }

 private:
  void Tell() const { REQUIRE(write(ends_[1], "x", 1) == 1); }

  [[noreturn]] void Hold(const std::string& path) {
    const auto claim = SocketClaim::Take(path);
    if (!claim.ok() || write(taken_[1], "x", 1) != 1) _exit(1);
    char told = 0;
    if (read(ends_[0], &told, 1) != 1) _exit(1);
    std::thread([this] {
      char told_again = 0;
      _exit(read(ends_[0], &told_again, 1) == 1 ? 0 : 1);
    }).detach();
    for (;;) syscall(SYS_exit, 0);  // of this thread alone; pthread_exit would unwind into the test
  }

  pid_t pid_ = -1;
  int ends_[2] = {-1, -1};
  int taken_[2] = {-1, -1};
};

}  // namespace

TEST_CASE("SocketClaim: its lock file is there while it lives, and goes with it") {
  TempDir dir;
  const std::string path = dir.Join("s");
  {
    auto claim = SocketClaim::Take(path);
    KVD_REQUIRE_OK(claim);
    CHECK(Exists(path + ".lock"));
    const SocketClaim moved = *std::move(claim);
    CHECK(Exists(path + ".lock"));
    KVD_REQUIRE_CODE(SocketClaim::Take(path), kAlreadyExists);
    KVD_REQUIRE_CODE(SocketClaim::Check(path), kAlreadyExists);
    CHECK(Exists(path + ".lock"));
  }
  CHECK(std::filesystem::is_empty(dir.path()));
  KVD_REQUIRE_OK(SocketClaim::Take(path));
}

TEST_CASE("SocketClaim: a claim that is refused for what lies there removes its lock file only") {
  TempDir dir;
  const std::string path = dir.Join("s");
  std::ofstream(path) << "x";
  KVD_REQUIRE_CODE(SocketClaim::Take(path), kFailedPrecondition);
  CHECK(Exists(path));
  CHECK_FALSE(Exists(path + ".lock"));
}

TEST_CASE("SocketClaim: a lock file that was replaced by hand is not removed") {
  TempDir dir;
  const std::string path = dir.Join("s");
  std::optional<SocketClaim> first(*SocketClaim::Take(path));
  REQUIRE(unlink((path + ".lock").c_str()) == 0);
  const auto second = SocketClaim::Take(path);
  KVD_REQUIRE_OK(second);
  first.reset();
  CHECK(Exists(path + ".lock"));
  KVD_REQUIRE_CODE(SocketClaim::Take(path), kAlreadyExists);
}

TEST_CASE("SocketClaim: many that take and drop it at once never hold it together") {
  TempDir dir;
  const std::string path = dir.Join("s");
  std::atomic<int> holders = 0;
  std::atomic<int> taken = 0;
  std::atomic<bool> together = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto claim = SocketClaim::Take(path);
        if (!claim.ok()) continue;
        if (holders.fetch_add(1) != 0) together = true;
        ++taken;
        holders.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(together);
  CHECK(taken > 0);
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("SocketClaim: a check makes nothing, and takes a dead kvd's lock file for free") {
  TempDir dir;
  const std::string path = dir.Join("s");
  KVD_REQUIRE_OK(SocketClaim::Check(path));
  CHECK(std::filesystem::is_empty(dir.path()));
  std::ofstream(path + ".lock") << "1\n";
  KVD_REQUIRE_OK(SocketClaim::Check(path));
  CHECK(Exists(path + ".lock"));
  KVD_REQUIRE_CODE(SocketClaim::Check(dir.Join("missing/s")), kInvalidArgument);
}

TEST_CASE(
    "SocketClaim: a holder that is dying is waited for, with one line; one that lives is not") {
  TempDir dir;
  const std::string path = dir.Join("s");
  const Holder holder(path);
  std::vector<std::string> lines;
  SocketClaim::Patience patience{.for_dying_ns = INT64_MAX / 2, .log = {}};
  patience.log = [&](const std::string& line) {
    lines.push_back(line);
    holder.Die();
  };
  KVD_REQUIRE_CODE(SocketClaim::Take(path, patience), kAlreadyExists);
  CHECK(lines.empty());
  holder.BeginToDie();
  KVD_REQUIRE_OK(SocketClaim::Check(path));
  KVD_REQUIRE_OK(SocketClaim::Take(path, patience));
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains(holder.pid()));
}

TEST_CASE("SocketClaim: a holder that is dying is not waited for beyond the time for it") {
  TempDir dir;
  const std::string path = dir.Join("s");
  const Holder holder(path);
  holder.BeginToDie();
  const auto refused = SocketClaim::Take(path, {.for_dying_ns = 0, .log = {}});
  KVD_REQUIRE_CODE(refused, kAlreadyExists);
  CHECK_THAT(MessageOf(refused), Catch::Contains(holder.pid()) && Catch::Contains("has ended"));
}

TEST_CASE("LockOwner: a process that was killed ends, whatever it is doing, and then is gone") {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (;;) pause();
  }
  const std::string text = std::to_string(pid);
  CHECK(LookAtLockOwner(text) == LockOwner::kLives);
  CHECK(LookAtLockOwner("") == LockOwner::kLives);
  kill(pid, SIGKILL);
  CHECK(LookAtLockOwner(text) == LockOwner::kEnds);
  waitpid(pid, nullptr, 0);
  CHECK(LookAtLockOwner(text) == LockOwner::kGone);
}

TEST_CASE("SocketClaim: a runtime directory that cannot be used is named with its variable") {
  if (geteuid() == 0 && seteuid(65534) != 0) KVD_SKIP("cannot become another user");
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before == nullptr ? "" : before;
  std::string messages[4];
  setenv("XDG_RUNTIME_DIR", "/does/not/exist", 1);
  messages[0] = MessageOf(SocketClaim::Take("/does/not/exist/kvd.sock"));
  messages[1] = MessageOf(SocketClaim::Check("/does/not/exist/kvd.sock"));
  setenv("XDG_RUNTIME_DIR", "/proc", 1);
  messages[2] = MessageOf(SocketClaim::Take("/proc/kvd.sock"));
  messages[3] = MessageOf(SocketClaim::Check("/proc/kvd.sock"));
  const std::string elsewhere = MessageOf(SocketClaim::Check("/does/not/exist/s"));
  setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
  if (before == nullptr) unsetenv("XDG_RUNTIME_DIR");
  if (getuid() == 0) REQUIRE(seteuid(0) == 0);
  for (const std::string& message : messages) {
    CHECK_THAT(message, Catch::Contains("XDG_RUNTIME_DIR") && Catch::Contains("--shm=PATH"));
  }
  CHECK_THAT(elsewhere, !Catch::Contains("XDG_RUNTIME_DIR"));
}

}  // namespace kvd::test
