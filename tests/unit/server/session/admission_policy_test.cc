#include "server/session/admission_policy.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/protocol/handshake.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

AdmissionPolicy::Options SomeOptions() {
  AdmissionPolicy::Options options;
  options.geometry.incarnation = 42;
  options.geometry.region_bytes = 1 << 26;
  options.geometry.directory_offset = 4096;
  options.geometry.directory_entries = 64;
  options.geometry.bucket_bytes = 1024;
  options.geometry.shard_count = 2;
  options.sessions_max = 3;
  options.credits_max = 64;
  options.max_value_bytes = 1 << 20;
  return options;
}

Hello Wanting(uint32_t credits) {
  Hello hello{};
  hello.credits_wanted = credits;
  return hello;
}

WelcomeStatus StatusOf(const Welcome& welcome) {
  return static_cast<WelcomeStatus>(welcome.status);
}

}  // namespace

TEST_CASE("Admission: a welcome passes the client's own check and carries the limits") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  const Welcome sent = policy.Admit({}, Wanting(16));
  Welcome parsed;
  REQUIRE(ParseWelcome(std::as_bytes(std::span(&sent, 1)), parsed).ok());
  CHECK(parsed.incarnation == 42);
  CHECK(parsed.max_value_bytes == 1 << 20);
  CHECK(parsed.credits == 16);
  CHECK(parsed.server_unix_us == static_cast<uint64_t>(clock.NowUnixUs()));
}

TEST_CASE("Admission: credits are what the client wants, within 1 and the server's limit") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  CHECK(policy.Admit({}, Wanting(0)).credits == 1);
  CHECK(policy.Admit({}, Wanting(64)).credits == 64);
  CHECK(policy.Admit({}, Wanting(~0u)).credits == 64);
}

TEST_CASE("Admission: at most sessions_max at once, each with an id of its own") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  const uint64_t first = policy.Admit({}, Wanting(1)).session_id;
  const uint64_t second = policy.Admit({}, Wanting(1)).session_id;
  const uint64_t third = policy.Admit({}, Wanting(1)).session_id;
  const Welcome refused = policy.Admit({}, Wanting(1));
  CHECK(StatusOf(refused) == WelcomeStatus::kFull);
  CHECK_THAT(std::string(refused.text), Catch::Contains("--max_clients=3"));
  CHECK(policy.sessions() == 3);
  CHECK(policy.refused() == 1);
  policy.Gone(second);
  const uint64_t fourth = policy.Admit({}, Wanting(1)).session_id;
  CHECK(fourth != first);
  CHECK(fourth != second);
  CHECK(fourth != third);
  CHECK(policy.sessions_total() == 4);
}

TEST_CASE(
    "Admission: where it is full, two more for administration by the own user or root over shm") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  Hello hello = Wanting(1);
  hello.feature_bits = kFeatureAdministration;
  PeerIdentity me;
  me.transport = "shm";
  me.uid = geteuid();
  // While there is room it is a session as any other.
  const Welcome ordinary = policy.Admit(me, hello);
  CHECK(ordinary.feature_bits == 0);
  policy.Admit({}, Wanting(1));
  policy.Admit({}, Wanting(1));
  CHECK(StatusOf(policy.Admit(me, Wanting(1))) == WelcomeStatus::kFull);  // does not ask to

  PeerIdentity other = me;
  other.uid = geteuid() + 1;
  PeerIdentity remote = me;
  remote.transport = "rdma";
  CHECK(StatusOf(policy.Admit(other, hello)) == WelcomeStatus::kFull);
  CHECK(StatusOf(policy.Admit(remote, hello)) == WelcomeStatus::kFull);

  const Welcome first = policy.Admit(me, hello);
  CHECK(StatusOf(first) == WelcomeStatus::kAdmitted);
  CHECK(first.feature_bits == kFeatureAdministration);
  PeerIdentity root = me;
  root.uid = 0;
  CHECK(StatusOf(policy.Admit(root, hello)) == WelcomeStatus::kAdmitted);
  CHECK(StatusOf(policy.Admit(me, hello)) == WelcomeStatus::kFull);
  CHECK(policy.sessions() == 5);
  CHECK(policy.sessions_over("shm") == 3);
  CHECK(policy.sessions_over("rdma") == 0);
  // They take nobody's place.
  policy.Gone(ordinary.session_id);
  CHECK(StatusOf(policy.Admit({}, Wanting(1))) == WelcomeStatus::kAdmitted);
  CHECK(StatusOf(policy.Admit({}, Wanting(1))) == WelcomeStatus::kFull);
  policy.Gone(first.session_id);
  CHECK(StatusOf(policy.Admit({}, Wanting(1))) == WelcomeStatus::kFull);
  CHECK(StatusOf(policy.Admit(me, hello)) == WelcomeStatus::kAdmitted);
}

TEST_CASE("Admission: a client that comes back in time is told that its replies were kept") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.absent_clients_max = 2;
  AdmissionPolicy policy(options, clock);
  const auto admit = [&policy](uint64_t client_id) {
    Hello hello = Wanting(1);
    hello.client_id = client_id;
    return policy.Admit({}, hello);
  };
  const auto kept = [](const Welcome& welcome) {
    return (welcome.flags & kWelcomeRepliesKept) != 0;
  };
  const Welcome first = admit(7);
  CHECK_FALSE(kept(first));
  CHECK(policy.KnowsClient(7));
  const Welcome second = admit(7);  // before the server has noticed the end of the first session
  CHECK(kept(second));
  policy.Gone(first.session_id);
  clock.AdvanceMs(3'600'000);
  CHECK(policy.KnowsClient(7));
  policy.Gone(second.session_id);
  clock.AdvanceNs(AdmissionPolicy::kRepliesKeptNs - 1);
  const Welcome third = admit(7);
  CHECK(kept(third));
  policy.Gone(third.session_id);
  clock.AdvanceNs(AdmissionPolicy::kRepliesKeptNs);
  CHECK_FALSE(policy.KnowsClient(7));
  const Welcome fourth = admit(7);
  CHECK_FALSE(kept(fourth));
  policy.Gone(fourth.session_id);
  // Nor longer than others need the room.
  for (const uint64_t other : {8, 9}) policy.Gone(admit(other).session_id);
  CHECK_FALSE(policy.KnowsClient(7));
  CHECK(policy.KnowsClient(8));
  CHECK(policy.KnowsClient(9));
  CHECK(policy.refused() == 0);
}

TEST_CASE("Admission: a server that evicts says that it wants to know what is read") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.wants_hits = GENERATE(false, true);
  AdmissionPolicy policy(options, clock);
  CHECK(((policy.Admit({}, Wanting(1)).flags & kWelcomeWantsHits) != 0) == options.wants_hits);
}

TEST_CASE("Admission: nobody gets in once shutdown has begun") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  policy.BeginShutdown();
  CHECK(StatusOf(policy.Admit({}, Wanting(1))) == WelcomeStatus::kShuttingDown);
}

namespace {

std::shared_ptr<const AccessRules> SomeRules() {
  AccessRules rules;
  rules.keys = {{"app", Role::kReadWrite, "secret"}, {"old", Role::kRead, "secret"}};
  rules.peers = {{PeerRule::Kind::kUser, 1000, Role::kRead},
                 {PeerRule::Kind::kGroup, 50, Role::kReadWrite}};
  return std::make_shared<const AccessRules>(rules);
}

PeerIdentity LocalUser(uid_t uid, std::vector<gid_t> groups = {}) {
  PeerIdentity peer;
  peer.transport = "shm";
  peer.uid = uid;
  peer.groups = std::move(groups);
  return peer;
}

PeerIdentity WithKey(const std::string& name, Role role) {
  PeerIdentity peer;
  peer.transport = "rdma";
  peer.address = "10.0.0.1:1";
  peer.key = std::make_shared<const AccessKey>(AccessKey{name, role, "secret"});
  return peer;
}

Role RoleOf(const Welcome& welcome) { return static_cast<Role>(welcome.role); }

}  // namespace

TEST_CASE("Admission: without rules the own user and root administer, all others read and write") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.sessions_max = 100;
  AdmissionPolicy policy(options, clock);
  CHECK(RoleOf(policy.Admit(LocalUser(geteuid()), Wanting(1))) == Role::kAdmin);
  CHECK(RoleOf(policy.Admit(LocalUser(0), Wanting(1))) == Role::kAdmin);
  CHECK(RoleOf(policy.Admit(LocalUser(geteuid() + 1), Wanting(1))) == Role::kReadWrite);
  PeerIdentity remote;
  remote.transport = "rdma";
  CHECK(RoleOf(policy.Admit(remote, Wanting(1))) == Role::kReadWrite);
  Hello with_key = Wanting(1);
  with_key.feature_bits = kFeatureKey;
  CHECK_FALSE(policy.WantsProof(remote, with_key));
}

TEST_CASE("Admission: with rules, a key's role, or that of the rule that allows most") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.sessions_max = 100;
  options.access = SomeRules();
  AdmissionPolicy policy(options, clock);
  const uid_t stranger = geteuid() + 5000;
  CHECK(RoleOf(policy.Admit(LocalUser(1000), Wanting(1))) == Role::kRead);
  CHECK(RoleOf(policy.Admit(LocalUser(1000, {3, 50}), Wanting(1))) == Role::kReadWrite);
  CHECK(RoleOf(policy.Admit(LocalUser(geteuid()), Wanting(1))) == Role::kAdmin);
  CHECK(StatusOf(policy.Admit(LocalUser(stranger), Wanting(1))) == WelcomeStatus::kNotAdmitted);
  CHECK(RoleOf(policy.Admit(WithKey("app", Role::kReadWrite), Wanting(1))) == Role::kReadWrite);
  // The rules may have changed between the proof and this.
  CHECK(StatusOf(policy.Admit(WithKey("gone", Role::kAdmin), Wanting(1))) ==
        WelcomeStatus::kNotAdmitted);
  CHECK(StatusOf(policy.Admit(WithKey("app", Role::kAdmin), Wanting(1))) ==
        WelcomeStatus::kNotAdmitted);
  // Whom the kernel does not vouch for, no rule for users lets in.
  PeerIdentity remote = LocalUser(1000, {50});
  remote.transport = "rdma";
  CHECK(StatusOf(policy.Admit(remote, Wanting(1))) == WelcomeStatus::kNotAdmitted);
  CHECK(policy.refused() == 4);
  Hello with_key = Wanting(1);
  with_key.feature_bits = kFeatureKey;
  CHECK(policy.WantsProof(remote, with_key));
  CHECK_FALSE(policy.WantsProof(remote, Wanting(1)));
  CHECK(policy.FindKey("app")->role == Role::kReadWrite);
  CHECK(policy.FindKey("none") == nullptr);
}

TEST_CASE("Admission: new rules end the sessions that they would not admit as they are") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.sessions_max = 100;
  options.access = SomeRules();
  AdmissionPolicy policy(options, clock);
  const auto admitted = [&](const PeerIdentity& peer) {
    return policy.Admit(peer, Wanting(1)).session_id;
  };
  const uint64_t app = admitted(WithKey("app", Role::kReadWrite));
  const uint64_t old = admitted(WithKey("old", Role::kRead));
  const uint64_t user = admitted(LocalUser(1000));
  const uint64_t group = admitted(LocalUser(2000, {50}));
  const uint64_t owner = admitted(LocalUser(geteuid()));
  const auto ended_by = [&](AccessRules rules) {
    std::vector<uint64_t> ids;
    for (const SessionFacts& facts : policy.Replace(std::make_shared<const AccessRules>(rules)))
      ids.push_back(facts.session_id);
    for (const uint64_t id : ids) policy.Gone(id);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  using Ids = std::vector<uint64_t>;
  CHECK(ended_by(*SomeRules()) == Ids{});
  AccessRules rules = *SomeRules();
  rules.keys[0].secret = "another";
  CHECK(ended_by(rules) == Ids{app});
  rules.keys.pop_back();
  CHECK(ended_by(rules) == Ids{old});
  rules.peers[0].role = Role::kReadWrite;
  rules.peers.pop_back();
  const Ids both = ended_by(rules);
  CHECK(std::find(both.begin(), both.end(), user) != both.end());
  CHECK(std::find(both.begin(), both.end(), group) != both.end());
  CHECK(std::find(both.begin(), both.end(), owner) == both.end());
  CHECK(policy.Sessions().size() == 1);
}

TEST_CASE("Admission: limits of an address hold for others than the own user and root") {
  FakeClock clock;
  AdmissionPolicy::Options options = SomeOptions();
  options.sessions_max = 100;
  options.of_address = {.sessions_max = 1, .handshakes_per_second = 2};
  AdmissionPolicy policy(options, clock);
  const PeerIdentity other = LocalUser(geteuid() + 1);
  const PeerIdentity owner = LocalUser(geteuid());
  const uint64_t first = policy.Admit(other, Wanting(1)).session_id;
  CHECK(StatusOf(policy.Admit(other, Wanting(1))) == WelcomeStatus::kFull);
  policy.Gone(first);
  CHECK(StatusOf(policy.Admit(other, Wanting(1))) == WelcomeStatus::kAdmitted);
  CHECK_FALSE(policy.TurnAway(other));
  CHECK_FALSE(policy.TurnAway(other));
  CHECK(policy.TurnAway(other));
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(policy.TurnAway(owner));
    CHECK(StatusOf(policy.Admit(owner, Wanting(1))) == WelcomeStatus::kAdmitted);
  }
}

TEST_CASE("Admission: a session has its credits, and what is counted of it, until it is gone") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  const Welcome welcome = policy.Admit(LocalUser(geteuid()), Wanting(5));
  const uint64_t other = policy.Admit(LocalUser(geteuid()), Wanting(1)).session_id;
  const auto counters = std::make_shared<SessionCounters>();
  policy.Attach(welcome.session_id, counters);
  policy.Attach(4711, counters);
  counters->requests.Add(67);
  std::vector<SessionFacts> sessions = policy.Sessions();
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[0].credits == welcome.credits);
  REQUIRE(sessions[0].counters != nullptr);
  CHECK(sessions[0].counters->requests.get() == 67);
  CHECK(sessions[1].session_id == other);
  CHECK(sessions[1].counters == nullptr);
  sessions.clear();
  CHECK(counters.use_count() == 2);
  policy.Gone(welcome.session_id);
  CHECK(counters.use_count() == 1);
}

TEST_CASE("Admission: counts of clients are taken from those who know of it") {
  FakeClock clock;
  AdmissionPolicy policy(SomeOptions(), clock);
  Hello hello = Wanting(1);
  CHECK((policy.Admit(LocalUser(geteuid()), hello).feature_bits & kFeatureCounts) == 0);
  hello.feature_bits = kFeatureCounts | uint64_t{1} << 63;  // and something of a later version
  CHECK(policy.Admit(LocalUser(geteuid()), hello).feature_bits == kFeatureCounts);
}

}  // namespace kvd::test
