#include "server/session/address_limits.h"

#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

TEST_CASE("Address limits: without any there is nothing to remember") {
  AddressLimits limits({});
  for (int i = 0; i < 1000; ++i) {
    CHECK_FALSE(limits.Begin("10.0.0.1", 0));
    CHECK_FALSE(limits.Enter("10.0.0.1"));
  }
  limits.Leave("10.0.0.1");
  CHECK(limits.remembered() == 0);
}

TEST_CASE("Address limits: so many sessions of one address, and others are not held up") {
  AddressLimits limits({.sessions_max = 2});
  CHECK_FALSE(limits.Enter("10.0.0.1"));
  CHECK_FALSE(limits.Enter("10.0.0.1"));
  CHECK(limits.Enter("10.0.0.1").value() == "--max_clients_per_address=2 reached");
  CHECK_FALSE(limits.Enter("10.0.0.2"));
  limits.Leave("10.0.0.1");
  CHECK_FALSE(limits.Enter("10.0.0.1"));
  CHECK(limits.Enter("10.0.0.1"));
  for (const char* address : {"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"})
    limits.Leave(address);
  CHECK(limits.remembered() == 0);
}

TEST_CASE("Address limits: so many handshakes a second, and a quiet second's worth at once") {
  AddressLimits limits({.handshakes_per_second = 10});
  int64_t now_ns = 5 * kSecondNs;
  const auto begun = [&](int wanted) {
    int count = 0;
    for (int i = 0; i < wanted; ++i) count += limits.Begin("10.0.0.1", now_ns) ? 0 : 1;
    return count;
  };
  CHECK(begun(100) == 10);
  CHECK_FALSE(limits.Begin("10.0.0.2", now_ns));
  now_ns += kSecondNs / 2;
  CHECK(begun(100) == 5);
  now_ns += 100 * kSecondNs;
  CHECK(begun(100) == 10);
  CHECK(limits.Begin("10.0.0.1", now_ns).value() == "over --handshakes_per_second=10");
  now_ns -= 3 * kSecondNs;  // no clock that goes back gives anything
  CHECK(begun(100) == 0);
}

TEST_CASE("Address limits: what is remembered of addresses is bounded") {
  AddressLimits limits({.handshakes_per_second = 1});
  for (size_t i = 0; i < AddressLimits::kAbsentMax; ++i) {
    CHECK_FALSE(limits.Begin(std::to_string(i), kSecondNs));
  }
  CHECK(limits.Begin("one more", kSecondNs).value() ==
        "handshakes from too many addresses at once");
  CHECK(limits.remembered() == AddressLimits::kAbsentMax);
  CHECK_FALSE(limits.Begin("one more", 3 * kSecondNs));
  CHECK(limits.remembered() == 1);
}

TEST_CASE("Address limits: an address is a host, or a user of this one") {
  PeerIdentity peer;
  peer.transport = "rdma";
  peer.address = "10.0.0.1:4711";
  CHECK(AddressLimits::AddressOf(peer) == "10.0.0.1");
  peer.address = "[fe80::1%eth0]:4711";
  CHECK(AddressLimits::AddressOf(peer) == "[fe80::1%eth0]");
  peer.transport = "shm";
  peer.uid = 1000;
  CHECK(AddressLimits::AddressOf(peer) == "uid:1000");
}

}  // namespace kvd::test
