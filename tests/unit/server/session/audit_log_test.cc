#include "server/session/audit_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
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
  CHECK(LinesOf(path).size() == 2);
  struct stat file {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  REQUIRE(rename(path.c_str(), dir.Join("old").c_str()) == 0);
  log->Admitted(SomeSession());
  REQUIRE(log->Reopen().ok());
  log->Admitted(SomeSession());
  CHECK(LinesOf(dir.Join("old")).size() == 3);
  CHECK(LinesOf(path).size() == 1);
}

TEST_CASE("Audit log: a path that cannot be is an error that names it; a full disk is counted") {
  const TempDir dir;
  FakeClock clock;
  const auto none = AuditLog::Open(dir.Join("no/such/folder"), clock);
  REQUIRE_FALSE(none.ok());
  CHECK_THAT(std::string(none.status().message()), Catch::Contains(dir.Join("no/such/folder")));
  const auto full = AuditLog::Open("/dev/full", clock).value();
  full->Admitted(SomeSession());
  CHECK(full->lost() == 1);
}

}  // namespace kvd::test
