// Reads over both kinds of channel: what comes back, what a deadline leaves behind, and the look at
// the lifeline.
#include "client/internal/region_reader.h"

#include <limits>
#include <string>

#include "client/internal/transfer_time.h"
#include "common/layout/superblock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/fake_channel.h"

namespace kvd::test {
namespace {

using Need = GetMachine::Need;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Fixture {
  explicit Fixture(bool mapped)
      : channel(region, mapped),
        queue(channel),
        reader(channel, queue),
        map(region.geometry(), 1 << 20) {}

  absl::StatusOr<Need> Get(std::string_view key, int64_t deadline_ns = kNever) {
    return reader.Run(machine, machine.Start(key, region.Hash(key)), deadline_ns);
  }

  TestRegion region{7};
  FakeChannel channel;
  ReadQueue queue;
  RegionReader reader;
  RegionMap map;
  GetMachine machine{map, true};
};

TEST_CASE("RegionReader: finds and misses over both kinds of channel") {
  Fixture fixture(GENERATE(true, false));
  fixture.region.Put({.key = "local", .value = "red"}, true);
  fixture.region.Put({.key = "heap", .value = std::string(50000, 'x')});
  auto need = fixture.Get("local");
  KVD_REQUIRE_OK(need);
  REQUIRE(*need == Need::kFound);
  CHECK(fixture.machine.item().value == "red");
  need = fixture.Get("heap");
  KVD_REQUIRE_OK(need);
  REQUIRE(*need == Need::kFound);
  CHECK(fixture.machine.item().value == std::string(50000, 'x'));
  need = fixture.Get("absent");
  KVD_REQUIRE_OK(need);
  CHECK(*need == Need::kAbsent);
  CHECK(fixture.reader.reads() == 5);  // the directory, three buckets, one item
  CHECK(fixture.reader.read_bytes() >= 3 * TestRegion::kBucketBytes + 50000);
}

TEST_CASE("RegionReader: nothing is believed once the server is dead") {
  Fixture fixture(true);
  fixture.region.Put({.key = "key", .value = "red"}, true);
  const uint32_t word = GENERATE(0u, kLifelineOwnerDied, kLifelineOwnerDied | 4711u);
  fixture.region.SetLifeline(word);
  KVD_REQUIRE_CODE(fixture.reader.CheckAlive(), kUnavailable);
  KVD_REQUIRE_CODE(fixture.Get("key"), kUnavailable);
  KVD_REQUIRE_CODE(fixture.Get("absent"), kUnavailable);
}

TEST_CASE("RegionReader: the session's own cause is told where there is one") {
  Fixture fixture(true);
  fixture.region.SetLifeline(0);
  fixture.channel.End(absl::UnavailableError("kvd was stopped by its operator"));
  CHECK(MessageOf(fixture.Get("key")) == "kvd was stopped by its operator");
}

TEST_CASE("RegionReader: waiters in the lifeline word do not make it dead") {
  Fixture fixture(true);
  fixture.region.SetLifeline(0x80000000u | 4711u);
  KVD_REQUIRE_OK(fixture.reader.CheckAlive());
}

TEST_CASE("RegionReader: a READ that does not complete ends with the deadline") {
  Fixture fixture(false);
  fixture.channel.hold_reads = true;
  KVD_REQUIRE_CODE(fixture.Get("key", 0), kDeadlineExceeded);
}

TEST_CASE("RegionReader: a READ given up at its deadline cannot land over what was judged later") {
  Fixture fixture(false);
  fixture.region.Put({.key = "key", .value = "red"}, true);
  KVD_REQUIRE_OK(fixture.Get("key"));  // knows the directory
  fixture.channel.hold_reads = true;
  KVD_REQUIRE_CODE(fixture.Get("key", 0), kDeadlineExceeded);
  REQUIRE(fixture.channel.read_posted());

  SECTION("it waits for the old one before it posts another") {
    const int posted = fixture.channel.reads;
    fixture.channel.on_wait.emplace_back([&] {
      CHECK(fixture.channel.reads == posted);
      fixture.channel.hold_reads = false;
      fixture.channel.CompleteRead(true);
    });
    const auto need = fixture.Get("key");
    KVD_REQUIRE_OK(need);
    CHECK(*need == Need::kFound);
    CHECK_FALSE(fixture.channel.read_posted());
  }
  SECTION("and gives up again rather than post another") {
    const int posted = fixture.channel.reads;
    KVD_REQUIRE_CODE(fixture.Get("key", 0), kDeadlineExceeded);
    CHECK(fixture.channel.reads == posted);
  }
  SECTION("the channel need not fetch all of it, and that it fails then fails nothing else") {
    CHECK(fixture.channel.given_up.size() == 1);
    fixture.channel.hold_reads = false;
    fixture.channel.CompleteRead(false);
    const auto need = fixture.Get("key");
    KVD_REQUIRE_OK(need);
    CHECK(*need == Need::kFound);
  }
  SECTION("a completion that came meanwhile is taken first") {
    fixture.channel.hold_reads = false;
    fixture.channel.CompleteRead(true);
    const auto need = fixture.Get("key");
    KVD_REQUIRE_OK(need);
    CHECK(*need == Need::kFound);
  }
}

TEST_CASE("RegionReader: a READ that failed is the session's end") {
  Fixture fixture(false);
  fixture.channel.hold_reads = true;
  SECTION("with its cause") {
    fixture.channel.on_wait.emplace_back([&] {
      fixture.channel.End(absl::DataLossError("the rkey was revoked"));
      fixture.channel.CompleteRead(false);
    });
    const auto need = fixture.Get("key");
    KVD_REQUIRE_CODE(need, kDataLoss);
    CHECK(MessageOf(need) == "the rkey was revoked");
  }
  SECTION("without one") {
    fixture.channel.on_wait.emplace_back([&] { fixture.channel.CompleteRead(false); });
    KVD_REQUIRE_CODE(fixture.Get("key"), kUnavailable);
  }
}

TEST_CASE("RegionReader: memory for one long item is its length, and not kept") {
  TestRegion region(7);
  FakeChannel channel(region, false);
  channel.hold_reads = true;  // none of them lands
  ReadQueue queue(channel);
  RegionReader reader(channel, queue);
  const uint64_t length = (uint64_t{17} << 20) + 8;
  channel.before_read = [&](int, const ReadOp&) { channel.End(absl::UnavailableError("enough")); };
  KVD_REQUIRE_CODE(reader.Read({RegionOffset{0}, length, GetMachine::Into::kItem}, kNever),
                   kUnavailable);
  REQUIRE(channel.buffers() == 1);
  CHECK(channel.buffer(1).size() < length + 8192);
}

TEST_CASE("RegionReader: a long item moves a deadline that was not chosen for it, and only that") {
  CHECK(TransferAllowanceNs(uint64_t{16} << 20) == 0);
  CHECK(TransferAllowanceNs(uint64_t{1} << 30) > 31'000'000'000);
  CHECK(TransferAllowanceNs(uint64_t{1} << 30) < 33'000'000'000);
}

TEST_CASE("RegionReader: buffers of the channel go back to it") {
  TestRegion region(7);
  FakeChannel channel(region, false);
  {
    ReadQueue queue(channel);
    RegionReader reader(channel, queue);
    for (const uint64_t length : {uint64_t{128}, uint64_t{1} << 20, uint64_t{1} << 16}) {
      KVD_REQUIRE_OK(reader.Read({RegionOffset{0}, length, GetMachine::Into::kItem}, kNever));
    }
    CHECK(channel.buffers() == 1);
  }
  CHECK(channel.buffers() == 0);
  CHECK(channel.frees_unknown == 0);
}

TEST_CASE("RegionReader: without memory for a read it says so") {
  Fixture fixture(false);
  fixture.channel.allocations_fail = true;
  KVD_REQUIRE_CODE(fixture.Get("key"), kResourceExhausted);
}

TEST_CASE("RegionReader: rounds end with the deadline") {
  Fixture fixture(true);
  const Slot slot = fixture.region.Put({.key = "key", .value = "red"}, true);
  fixture.region.SetState(slot, ItemState::kWriting);
  KVD_REQUIRE_CODE(fixture.Get("key", 0), kDeadlineExceeded);
  const auto need = fixture.Get("key");
  KVD_REQUIRE_OK(need);
  CHECK(*need == Need::kAskServer);
}

}  // namespace
}  // namespace kvd::test
