#include "server/session/session_report.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

std::vector<SessionFacts> SomeSessions() {
  std::vector<SessionFacts> sessions(3);
  sessions[0].session_id = 7;
  sessions[0].client_id = 0xabc;
  sessions[0].name = "loader";
  sessions[0].peer.transport = "rdma";
  sessions[0].peer.address = "10.0.0.1:4711";
  sessions[0].peer.key = std::make_shared<const AccessKey>(AccessKey{"app", Role::kRead, "s"});
  sessions[0].role = Role::kRead;
  sessions[0].credits = 16;
  const auto counters = std::make_shared<SessionCounters>();
  counters->requests.Add(30);
  counters->writes.Add(20);
  counters->received_bytes.Add(4000);
  counters->sent_bytes.Add(3000);
  counters->Note({1, 2, 3, 4, 5, 6, 7, 8, 9}, 0);
  counters->Note({.gets = UINT64_MAX,
                  .hits = 0,
                  .misses = 0,
                  .reads = 0,
                  .read_bytes = 0,
                  .torn_reads = 0,
                  .retries = 0,
                  .fallbacks = 0,
                  .read_errors = 0},
                 0);
  sessions[0].counters = counters;
  sessions[1] = sessions[0];
  sessions[1].session_id = 8;
  sessions[1].peer.address = "10.0.0.11:4711";
  sessions[1].peer.key = std::make_shared<const AccessKey>(AccessKey{"ops", Role::kRead, "s"});
  sessions[2].session_id = 9;
  sessions[2].client_id = 0xdef;
  sessions[2].name = "a b\n\x1b";
  sessions[2].peer.transport = "shm";
  sessions[2].peer.address = "/run/kvd.sock";
  sessions[2].peer.pid = 42;
  sessions[2].peer.uid = 1000;
  sessions[2].role = Role::kAdmin;
  return sessions;
}

using Ids = std::vector<uint64_t>;

Ids Meant(std::string_view who) { return SessionsMeant(SomeSessions(), who).value(); }

}  // namespace

TEST_CASE("Sessions meant: by number, client, key, user, address or name, and by nothing else") {
  CHECK(Meant("8") == Ids{8});
  CHECK(Meant("10") == Ids{});
  CHECK(Meant("client:0000000000000abc") == Ids{7, 8});
  CHECK(Meant("key:ops") == Ids{8});
  CHECK(Meant("key:") == Ids{});  // not all that have none
  CHECK(Meant("user:1000") == Ids{9});
  CHECK(Meant("user:0") == Ids{});  // nobody over RDMA has a user
  CHECK(Meant("user:x") == Ids{});
  CHECK(Meant("address:10.0.0.1") == Ids{7});  // and not 10.0.0.11
  CHECK(Meant("address:10.0.0.11:4711") == Ids{8});
  CHECK(Meant("address:") == Ids{});
  CHECK(Meant("loader") == Ids{7, 8});
  CHECK(Meant("load") == Ids{});
  CHECK(Meant("") == Ids{});
  CHECK(Meant("-1") == Ids{});
  CHECK(Meant("session:8") == Ids{8});
  CHECK(Meant("session:x") == Ids{});
  CHECK(Meant("name:8") == Ids{});
  CHECK(Meant("name:loader") == Ids{7, 8});
  // As the list shows it.
  CHECK(Meant("name:a?b??") == Ids{9});
  CHECK(Meant("a?b??") == Ids{9});
}

TEST_CASE("Sessions meant: a name that is another one's number or key ends nobody by itself") {
  std::vector<SessionFacts> sessions = SomeSessions();
  const auto refusal = [&](std::string_view who) {
    return std::string(SessionsMeant(sessions, who).status().message());
  };
  sessions[0].name = "9";
  CHECK(refusal("9") == "9 may mean session:9 (session 9), name:9 (session 7); say which");
  CHECK(SessionsMeant(sessions, "session:9").value() == Ids{9});
  CHECK(SessionsMeant(sessions, "name:9").value() == Ids{7});
  // There is no such session any more: whoever took its number for a name is not ended either.
  sessions[0].name = "10";
  CHECK(refusal("10") == "10 may mean name:10 (session 7); say which");
  CHECK(SessionsMeant(sessions, "session:10").value().empty());

  sessions[0].name = "ops";
  CHECK(refusal("ops") == "ops may mean name:ops (session 7), key:ops (session 8); say which");
  // A prefix is what it says.
  sessions[0].name = "key:ops";
  CHECK(SessionsMeant(sessions, "key:ops").value() == Ids{8});
  CHECK(SessionsMeant(sessions, "name:key:ops").value() == Ids{7});
  // One that is called as its key is plain.
  sessions[0].name = "app";
  CHECK(SessionsMeant(sessions, "app").value() == Ids{7});
  sessions[2].name = "0000000000000abc";
  CHECK_THAT(refusal("0000000000000abc"),
             Catch::Contains("client:0000000000000abc (session 7, 8)"));
  sessions[2].name = "";
  CHECK(SessionsMeant(sessions, "name:-").value() == Ids{9});
}

TEST_CASE("Sessions described: a line each, of words, whatever a client calls itself") {
  const std::string text = DescribeSessions(SomeSessions());
  CHECK_THAT(text, Catch::Contains(
                       "session=7 client=0000000000000abc name=loader transport=rdma "
                       "address=10.0.0.1:4711 key=app role=read since_unix_us=0 "
                       "credits=16 requests=30 writes=20 received_bytes=4000 "
                       "sent_bytes=3000 reported_gets=1 reported_hits=2 "
                       "reported_misses=3 reported_reads=4 reported_read_bytes=5 "
                       "reported_torn_reads=6 reported_retries=7 "
                       "reported_fallbacks=8 reported_read_errors=9 reported_disbelieved=1\n"));
  CHECK_THAT(text, Catch::Contains("name=a?b?? transport=shm address=/run/kvd.sock pid=42 uid=1000 "
                                   "key=- role=admin since_unix_us=0 credits=0 requests=0 "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

}  // namespace kvd::test
