#include "server/session/admission_policy.h"

#include <unistd.h>

#include <string>
#include <thread>
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

}  // namespace kvd::test
