#include "server/session/audit_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Json = nlohmann::json;

std::vector<Json> LinesOf(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

SessionFacts SomeSession() {
  SessionFacts session;
  session.session_id = 7;
  session.client_id = 0xabc;
  session.name = std::string("evil\n{\"event\"\xff", 14);
  session.peer.transport = "rdma";
  session.peer.address = "10.0.0.1:4711";
  session.peer.key = std::make_shared<const AccessKey>(AccessKey{"app", Role::kRead, "secret"});
  session.role = Role::kRead;
  return session;
}

}  // namespace

TEST_CASE("Audit log: each event is one line of JSON, whatever a client calls itself") {
  const TempDir dir;
  FakeClock clock;
  const std::string path = dir.Join("audit");
  const auto log = AuditLog::Open(path, clock).value();
  log->Admitted(SomeSession());
  log->Refused(SomeSession().peer, "\xc0\xaf", "unknown key");
  log->Kicked(SomeSession(), "an administrator", 9);
  log->Ended(SomeSession());
  log->Reloaded("line 1: \xff", 0);
  log->Reloaded("", 3);
  REQUIRE(log->Flush());
  const std::vector<Json> lines = LinesOf(path);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0]["event"] == "admitted");
  CHECK(lines[0]["session"] == 7);
  CHECK(lines[0]["client"] == "0000000000000abc");
  CHECK(lines[0]["role"] == "read");
  CHECK(lines[0]["key"] == "app");
  CHECK_FALSE(lines[0].contains("pid"));  // over RDMA nobody knows it
  CHECK(lines[1]["event"] == "refused");
  CHECK(lines[1]["why"] == "unknown key");
  CHECK(lines[2]["by_session"] == 9);
  CHECK(lines[3]["event"] == "ended");
  CHECK(lines[4]["ok"] == false);
  CHECK(lines[5]["ok"] == true);
  CHECK(lines[5]["sessions_ended"] == 3);
  CHECK(log->lost() == 0);
}

TEST_CASE("Audit log: it is its owner's alone, is appended to, and follows a rotation") {
  const TempDir dir;
  FakeClock clock;
  const std::string path = dir.Join("audit");
  AuditLog::Open(path, clock).value()->Admitted(SomeSession());
  const auto log = AuditLog::Open(path, clock).value();
  log->Admitted(SomeSession());
  REQUIRE(log->Flush());
  CHECK(LinesOf(path).size() == 2);
  struct stat file {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  REQUIRE(rename(path.c_str(), dir.Join("old").c_str()) == 0);
  log->Admitted(SomeSession());
  REQUIRE(log->Reopen().ok());
  log->Admitted(SomeSession());
  REQUIRE(log->Flush());
  CHECK(LinesOf(dir.Join("old")).size() == 3);
  CHECK(LinesOf(path).size() == 1);
}

TEST_CASE("Audit log: a path that cannot be is an error that names it; the old file goes on") {
  const TempDir dir;
  FakeClock clock;
  const auto none = AuditLog::Open(dir.Join("no/such/folder"), clock);
  REQUIRE_FALSE(none.ok());
  CHECK_THAT(std::string(none.status().message()), Catch::Contains(dir.Join("no/such/folder")));
  const std::string path = dir.Join("audit");
  const auto log = AuditLog::Open(path, clock).value();
  REQUIRE(rename(path.c_str(), dir.Join("old").c_str()) == 0);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(log->Reopen().ok());
  log->Admitted(SomeSession());
  REQUIRE(log->Flush());
  CHECK(LinesOf(dir.Join("old")).size() == 1);
}

TEST_CASE("Audit log: lines that a full disk does not take are counted, and it is said") {
  FakeClock clock;
  std::vector<std::string> said;
  {
    const auto log = AuditLog::Open("/dev/full", clock, [&](const std::string& line) {
                       said.push_back(line);
                     }).value();
    log->Admitted(SomeSession());
    log->Ended(SomeSession());
    REQUIRE(log->Flush());
    CHECK(log->lost() == 2);
  }
  REQUIRE(said.size() == 2);
  CHECK_THAT(said[0], Catch::Contains("the audit log /dev/full loses lines: No space left"));
  CHECK(said[1] == "the audit log /dev/full ends; lines lost: 2");
}

TEST_CASE("Audit log: a FIFO whose reader is stuck holds up nobody; then it says what is missing") {
  const TempDir dir;
  FakeClock clock;
  const std::string path = dir.Join("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(fcntl(reader.get(), F_SETPIPE_SZ, 4096) == 4096);
  const auto log = AuditLog::Open(path, clock).value();
  uint64_t lines = 0;
  while (log->lost() < 3) {
    log->Admitted(SomeSession());
    ++lines;
  }
  std::vector<Json> read_lines;
  std::string text;
  for (std::string piece(4096, 0); read_lines.empty() || read_lines.back()["event"] != "lost";) {
    pollfd wait{reader.get(), POLLIN, 0};
    REQUIRE(poll(&wait, 1, -1) == 1);
    const ssize_t got = read(reader.get(), piece.data(), piece.size());
    REQUIRE(got > 0);
    text.append(piece, 0, static_cast<size_t>(got));
    for (size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      read_lines.push_back(Json::parse(text.substr(0, end)));
  }
  CHECK(read_lines.size() == lines - 3 + 1);
  CHECK(read_lines.back()["lines"] == 3);
}

TEST_CASE("Audit log: an address that is refused again and again has two lines a second") {
  const TempDir dir;
  FakeClock clock;
  const std::string path = dir.Join("audit");
  const auto log = AuditLog::Open(path, clock).value();
  const PeerIdentity stranger{.transport = "shm", .address = "/s", .pid = 3, .uid = 5555};
  for (int i = 0; i < 5000; ++i) {
    log->Refused(stranger, "x", "no rule");
    clock.AdvanceNs(500'000);  // 2.5 s in all
  }
  // Who gets in is always told.
  log->Admitted(SomeSession());
  log->Admitted(SomeSession());
  REQUIRE(log->Flush());
  std::vector<Json> lines = LinesOf(path);
  REQUIRE(lines.size() == 5 + 2);
  CHECK(lines[0]["event"] == "refused");
  CHECK(lines[1]["event"] == "refused_more");
  CHECK(lines[1]["lines"] == 1999);
  CHECK(lines[1]["uid"] == 5555);
  CHECK(lines[1]["why"] == "no rule");
  CHECK(lines[1]["seconds"] == 1.0);
  // The last second's count comes by itself, though nobody is refused any more.
  clock.AdvanceMs(1000);
  while ((lines = LinesOf(path)).size() == 7) std::this_thread::yield();
  CHECK(lines.back()["event"] == "refused_more");
  CHECK(lines.back()["lines"] == 999);
}

TEST_CASE("Audit log: the end tells what was counted") {
  const TempDir dir;
  FakeClock clock;
  const std::string path = dir.Join("audit");
  {
    const auto log = AuditLog::Open(path, clock).value();
    for (int i = 0; i < 3; ++i) log->Refused(SomeSession().peer, "x", "unknown key");
  }
  const std::vector<Json> lines = LinesOf(path);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1]["lines"] == 2);
  CHECK(lines[1]["address"] == "10.0.0.1");  // whatever its ports
}

}  // namespace kvd::test
