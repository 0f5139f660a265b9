// Who gets in, as what, and how one is sent away: against a real kvd with a key file, over shared
// memory and by RDMA.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kApp = "key app read-write 00112233445566778899aabbccddeeff\n";
const std::string kNewApp = "key app read-write ff112233445566778899aabbccddeeff\n";
const std::string kReader = "key reader read 10112233445566778899aabbccddeeff\n";
const std::string kBoss = "key boss admin 20112233445566778899aabbccddeeff\n";

class Files {
 public:
  // A file for its owner alone, put in place in one step.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = dir_.Join(name);
    std::ofstream(path + ".new") << text;
    REQUIRE(chmod((path + ".new").c_str(), 0600) == 0);
    REQUIRE(rename((path + ".new").c_str(), path.c_str()) == 0);
    return path;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(dir_.Join(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string path(const std::string& name) const { return dir_.Join(name); }

 private:
  TempDir dir_;
};

struct Fixture {
  // By TCP instead of rdma_cm, where it is by RDMA.
  explicit Fixture(bool may_be_by_tcp = false)
      : by_tcp(may_be_by_tcp && KvdUnderTest::IsOverRdma()), kvd(Flags()) {}

  std::vector<std::string> Flags() const {
    std::vector<std::string> flags = {"--memory=64m", "--max_value=16m",
                                      "--keys=" + files.Write("kvd.keys", kApp + kReader + kBoss),
                                      "--audit=" + files.path("audit")};
    if (by_tcp) flags.push_back("--connect=tcp");
    return flags;
  }
  ClientOptions With(const std::string& key) const {
    ClientOptions options;
    options.rdma_connect_by_tcp = by_tcp;
    options.deadline = seconds(30);
    options.key_file = files.path("client.keys");
    options.key_name = key;
    return options;
  }
  std::unique_ptr<Client> As(const std::string& key) const { return kvd.Connect(With(key)); }
  absl::Status Refusal(const ClientOptions& options) const {
    return Client::Connect(kvd.target(), options).status();
  }
  // Until kvd has read its key file anew.
  void Reload(const std::string& keys) {
    files.Write("kvd.keys", keys);
    ReloadAsItIs();
  }
  // Each log has a thread of its own.
  std::string AwaitInLog(const std::string& text) {
    std::string log;
    do log = kvd.process().Log();
    while (log.find(text) == std::string::npos);
    return log;
  }
  void ReloadAsItIs() {
    const std::string before = files.Read("audit");
    kvd.process().Signal(SIGHUP);
    while (files.Read("audit").find("\"reloaded\"", before.size()) == std::string::npos)
      std::this_thread::yield();
  }

  const bool by_tcp;
  Files files;
  const std::string client_keys = files.Write("client.keys", kApp + kReader + kBoss);
  KvdUnderTest kvd;
};

uint64_t Stat(Client& client, const std::string& name) {
  const auto statistics = client.Stats().value();
  for (const auto& [each, value] : statistics) {
    if (each == name) return std::stoull(value);
  }
  FAIL("no statistic " << name);
  return 0;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "Admission: a key's role is what its session may do") {
  const auto app = As("app");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  KVD_REQUIRE_CODE(app->Sessions(), kPermissionDenied);
  KVD_REQUIRE_CODE(app->Kick("reader"), kPermissionDenied);

  const auto reader = As("reader");
  CHECK(reader->Get("k").value() == "v");
  CHECK(reader->Exists("k").value());
  KVD_REQUIRE_OK(reader->Stats());
  KVD_REQUIRE_OK(reader->Ping());
  CHECK_THAT(MessageOf(reader->Sessions().status()), Contains("for the role admin"));
  const absl::Status refused = reader->Put("k", "w").status();
  KVD_REQUIRE_CODE(refused, kPermissionDenied);
  CHECK_THAT(MessageOf(refused), Contains("may only read"));
  KVD_REQUIRE_CODE(reader->Delete("k"), kPermissionDenied);
  KVD_REQUIRE_CODE(reader->Increment("n", 1), kPermissionDenied);
  KVD_REQUIRE_CODE(reader->Append("k", "x"), kPermissionDenied);
  KVD_REQUIRE_CODE(reader->Touch("k", {}), kPermissionDenied);
  KVD_REQUIRE_CODE(reader->Flush(""), kPermissionDenied);
  KVD_REQUIRE_CODE(reader->Put("k", std::string(1 << 20, 'x')), kPermissionDenied);  // pulled
  // The session goes on, and nothing has changed.
  CHECK(reader->Get("k").value() == "v");
  CHECK(reader->counters().reconnects == 0);

  const auto boss = As("boss");
  KVD_REQUIRE_OK(boss->Put("k", "w"));
  std::map<std::string, std::string> role_of_key;
  const auto sessions = boss->Sessions().value();
  for (const Client::Facts& facts : sessions) {
    std::map<std::string, std::string> fact(facts.begin(), facts.end());
    role_of_key[fact.at("key")] = fact.at("role");
    CHECK(fact.at("transport") == (kvd.over_rdma() ? "rdma" : "shm"));
  }
  CHECK(role_of_key == std::map<std::string, std::string>{
                           {"app", "read-write"}, {"reader", "read"}, {"boss", "admin"}});
}

TEST_CASE("Admission: keys, roles and revocation are the same where --connect=tcp is the way in") {
  Fixture fixture(/*by_tcp=*/true);
  const auto app = fixture.As("app");
  const auto reader = fixture.As("reader");
  const auto boss = fixture.As("boss");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  CHECK(reader->Get("k").value() == "v");
  KVD_REQUIRE_CODE(reader->Put("k", "w"), kPermissionDenied);
  KVD_REQUIRE_CODE(app->Sessions(), kPermissionDenied);
  CHECK(boss->Sessions().value().size() == 3);
  ClientOptions wrong = fixture.With("app");
  wrong.key_file = fixture.files.Write("wrong.keys", kNewApp);
  const absl::Status refused = fixture.Refusal(wrong);
  KVD_REQUIRE_CODE(refused, kPermissionDenied);
  CHECK_THAT(MessageOf(refused), Contains("unknown key or wrong secret"));
  // Kicked, it comes back; without its key it does not, and reads nothing any more.
  CHECK(boss->Kick("key:reader").value() == 1);
  while (reader->counters().reconnects == 0) KVD_REQUIRE_OK(reader->Ping());
  CHECK(reader->Get("k").value() == "v");
  fixture.Reload(kApp + kBoss);
  while (boss->Sessions().value().size() > 2) std::this_thread::yield();
  KVD_REQUIRE_CODE(reader->Get("k"), kPermissionDenied);
  CHECK(app->Get("k").value() == "v");
  CHECK(app->counters().reconnects == 0);
  CHECK_THAT(fixture.files.Read("audit"),
             Contains("\"event\":\"refused\"") && Contains("\"event\":\"kicked\""));
}

TEST_CASE_METHOD(Fixture, "Admission: without the right secret nobody is let in") {
  As("app");  // kvd serves by now
  ClientOptions wrong = With("app");
  wrong.key_file = files.Write("wrong.keys", kNewApp);
  const absl::Status refused = Refusal(wrong);
  KVD_REQUIRE_CODE(refused, kPermissionDenied);
  CHECK_THAT(MessageOf(refused), Contains("unknown key or wrong secret"));
  wrong.key_file = files.Write("wrong.keys", "key other admin 00112233445566778899aabbccddeeff\n");
  wrong.key_name = "";
  KVD_REQUIRE_CODE(Refusal(wrong), kPermissionDenied);
  wrong.key_name = "app";
  KVD_REQUIRE_CODE(Refusal(wrong), kInvalidArgument);  // not in the client's own file
  wrong.key_file = files.path("none");
  KVD_REQUIRE_CODE(Refusal(wrong), kInvalidArgument);
  const std::string open_to_all = files.Write("open.keys", kApp);
  REQUIRE(chmod(open_to_all.c_str(), 0644) == 0);
  wrong.key_file = open_to_all;
  KVD_REQUIRE_CODE(Refusal(wrong), kPermissionDenied);
  if (kvd.over_rdma()) {
    const absl::Status keyless = Refusal({});
    KVD_REQUIRE_CODE(keyless, kPermissionDenied);
    CHECK_THAT(MessageOf(keyless), Contains("wants a key"));
  } else {
    // kvd's own user could do anything to it anyway.
    KVD_REQUIRE_OK(kvd.Connect()->Sessions());
  }
  const auto boss = As("boss");
  CHECK(Stat(*boss, "refused") >= 2);
}

TEST_CASE_METHOD(
    Fixture,
    "Admission: who is kicked loses the session, and its key decides whether it comes back") {
  const auto app = As("app");
  const auto reader = As("reader");
  const auto boss = As("boss");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  CHECK(boss->Kick("key:nobody").value() == 0);
  CHECK(boss->Kick("key:app").value() == 1);
  // It is let in again, and works as if nothing had been.
  KVD_REQUIRE_OK(app->Put("k", "w"));
  while (app->counters().reconnects == 0) KVD_REQUIRE_OK(app->Ping());
  // Without its key it is not.
  Reload(kReader + kBoss);
  // One that is under way just then may be unknown.
  absl::Status last;
  do {
    last = app->Put("k", "x").status();
  } while (last.ok() || absl::IsUnknown(last));
  KVD_REQUIRE_CODE(last, kPermissionDenied);
  CHECK(reader->Get("k").value() != "v");
  CHECK(reader->counters().reconnects == 0);
  // A name that no client gave itself, and somebody's key.
  const auto not_plain = boss->Kick("reader");
  KVD_REQUIRE_CODE(not_plain.status(), kInvalidArgument);
  CHECK_THAT(MessageOf(not_plain.status()), Contains("reader may mean key:reader (session "));
  CHECK(boss->Kick("name:reader").value() == 0);
  CHECK(reader->counters().reconnects == 0);
  CHECK(boss->counters().reconnects == 0);
}

TEST_CASE_METHOD(Fixture,
                 "Admission: a new secret ends the sessions of the old one; a client with the new "
                 "file goes on") {
  const auto app = As("app");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  files.Write("client.keys", kNewApp + kBoss);
  Reload(kNewApp + kReader + kBoss);
  while (app->counters().reconnects == 0) KVD_REQUIRE_OK(app->Ping());
  CHECK(app->Get("k").value() == "v");
  CHECK(Stat(*As("boss"), "sessions") == 2);
}

TEST_CASE_METHOD(Fixture,
                 "Admission: the last key can be taken away; a file that is gone takes none") {
  const auto app = As("app");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  REQUIRE(rename(files.path("kvd.keys").c_str(), files.path("away").c_str()) == 0);
  ReloadAsItIs();
  AwaitInLog("the keys stay as they were");
  KVD_REQUIRE_OK(As("app")->Get("k"));
  Reload("# nobody\n");
  AwaitInLog("nobody is let in but kvd's own user and root");
  absl::Status last;
  do {
    last = app->Put("k", "w").status();
  } while (last.ok() || absl::IsUnknown(last));
  KVD_REQUIRE_CODE(last, kPermissionDenied);
  KVD_REQUIRE_CODE(Refusal(With("boss")), kPermissionDenied);
  Reload(kApp);
  KVD_REQUIRE_OK(As("app")->Get("k"));
}

TEST_CASE_METHOD(Fixture, "Admission: a client whose session was ended reads no more") {
  const auto app = As("app");
  KVD_REQUIRE_OK(app->Put("k", "v"));
  KVD_REQUIRE_OK(app->Get("k"));
  const auto boss = As("boss");
  Reload(kBoss);
  while (boss->Sessions().value().size() > 1) std::this_thread::yield();
  KVD_REQUIRE_CODE(app->Get("k"), kPermissionDenied);
}

TEST_CASE_METHOD(Fixture, "Admission: a key file that is wrong changes nothing, and is said") {
  const auto app = As("app");
  Reload("key app\n");
  CHECK_THAT(files.Read("audit"), Contains("\"ok\":false"));
  CHECK_THAT(AwaitInLog("the keys stay as they were"), Contains("line 1"));
  KVD_REQUIRE_OK(app->Put("k", "v"));
  CHECK(app->counters().reconnects == 0);
  KVD_REQUIRE_OK(As("reader")->Get("k"));
}

TEST_CASE_METHOD(Fixture, "Admission: a kick during large transfers leaves nothing behind") {
  const auto boss = As("boss");
  const auto app = As("app");
  const std::string large(8 << 20, 'x');
  KVD_REQUIRE_OK(app->Put("large", large));
  const uint64_t free_bytes = Stat(*boss, "free_bytes");
  for (int i = 0; i < 5; ++i) {
    absl::Status put;
    absl::StatusOr<std::string> got;
    std::thread transfers([&] {
      put = app->Put("large", large).status();
      got = app->Get("large");
    });
    boss->Kick("key:app").value();
    transfers.join();
    // Once or not at all, and whole.
    if (!put.ok()) CHECK(absl::IsUnknown(put));
    KVD_REQUIRE_OK(got);
    CHECK(*got == large);
  }
  KVD_REQUIRE_OK(app->Put("large", large));
  // What was under way has been given back once nobody is there but the one who asks.
  app->Ping().value();
  while (Stat(*boss, "free_bytes") != free_bytes) std::this_thread::yield();
  CHECK(Stat(*boss, "sessions") == 2);
}

TEST_CASE_METHOD(Fixture,
                 "Admission: the audit log says who came, and never what only they may know") {
  {
    const auto app = As("app");
    KVD_REQUIRE_OK(app->Put("item-key", "item-value"));
    ClientOptions wrong = With("app");
    wrong.key_file = files.Write("wrong.keys", kNewApp);
    KVD_REQUIRE_CODE(Refusal(wrong), kPermissionDenied);
    As("boss")->Kick("key:app").value();
  }
  kvd.process().Terminate();
  const std::string audit = files.Read("audit");
  for (const char* event : {"admitted", "refused", "kicked", "ended"}) {
    CHECK_THAT(audit, Contains("\"event\":\"" + std::string(event) + "\""));
  }
  CHECK_THAT(audit, Contains("\"key\":\"app\"") && Contains("\"by_session\":"));
  struct stat file {};
  REQUIRE(stat(files.path("audit").c_str(), &file) == 0);
  CHECK((file.st_mode & 077) == 0);
  for (const std::string& text : {audit, kvd.process().Log()}) {
    for (const char* secret : {"item-key", "item-value", "00112233", "ff112233", "20112233"})
      CHECK_THAT(text, !Contains(secret));
  }
}

TEST_CASE("Admission: a client with a key does not trust a kvd without keys") {
  const Files files;
  KvdUnderTest kvd({"--memory=64m"});
  kvd.Connect();
  ClientOptions options;
  options.key_file = files.Write("client.keys", kApp);
  const absl::Status refused = Client::Connect(kvd.target(), options).status();
  KVD_REQUIRE_CODE(refused, kPermissionDenied);
  CHECK_THAT(MessageOf(refused), Contains("without --keys"));
}

}  // namespace kvd::test
