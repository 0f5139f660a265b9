// The claim on a socket path: one holder at a time, and nothing left behind.
#include "common/transport/shm/socket_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

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
