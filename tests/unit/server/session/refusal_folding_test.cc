#include "server/session/refusal_folding.h"

#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

PeerIdentity Uid(uid_t uid) { return {.transport = "shm", .address = "/s", .pid = 1, .uid = uid}; }

PeerIdentity Host(const std::string& address) { return {.transport = "rdma", .address = address}; }

}  // namespace

TEST_CASE(
    "Refusal folding: the first of an address is told, the others of its second are counted") {
  RefusalFolding folding;
  CHECK(folding.Note(Uid(5), "no", 0));
  CHECK_FALSE(folding.Note(Uid(5), "no", 1));
  CHECK_FALSE(folding.Note(Uid(5), "still no", kSecond - 1));
  // Somebody else is not drowned by them; a host is one whatever its port.
  CHECK(folding.Note(Uid(6), "no", 2));
  CHECK(folding.Note(Host("10.0.0.1:7"), "no", 3));
  CHECK_FALSE(folding.Note(Host("10.0.0.1:8"), "no", 4));
  CHECK(folding.TakeDue(kSecond - 1).empty());
  const auto more = folding.TakeDue(kSecond);
  REQUIRE(more.size() == 1);
  CHECK(more[0].count == 2);
  CHECK(more[0].why == "still no");
  CHECK(more[0].peer.uid == 5);
  CHECK(more[0].ns == kSecond);
  // Given out once; and the next one is a first again.
  CHECK(folding.TakeDue(2 * kSecond).size() == 1);  // of the host; uid 6 had none
  CHECK(folding.remembered() == 0);
  CHECK(folding.Note(Uid(5), "no", 2 * kSecond));
  CHECK(folding.TakeAll(2 * kSecond).empty());
}

TEST_CASE("Refusal folding: however many addresses there are, few are remembered and told") {
  RefusalFolding folding;
  size_t told = 0;
  for (uid_t uid = 0; uid < 10'000; ++uid) told += folding.Note(Uid(uid), "no", uid) ? 1 : 0;
  CHECK(told == RefusalFolding::kAddressesMax + 1);
  CHECK(folding.remembered() == told);
  const auto more = folding.TakeDue(2 * kSecond);
  REQUIRE(more.size() == 1);
  CHECK(more[0].many_addresses);
  CHECK(more[0].count == 10'000 - told);
  CHECK(folding.remembered() == 0);
}

}  // namespace kvd::test
