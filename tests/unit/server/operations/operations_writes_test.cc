// The requests that write under conditions or build on what is there, from request to reply.
#include <cstring>
#include <memory>
#include <string>

#include "common/base/hash.h"
#include "server/operations/once_operations.h"
#include "server/operations/operations.h"
#include "server/store/region.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kMaxValue = 20'000;
constexpr uint32_t kFrameBytes = 4608;

class WritesRig {
 public:
  WritesRig() {
    RegionOptions options;
    options.memory_bytes = 8 << 20;
    options.hugepages = HugepagePolicy::kOff;
    region = Region::Create(options).value();
    shard = Shard::Create(*region, 0, clock).value();
    operations = std::make_unique<Operations>(*shard, OperationLimits{kMaxValue, kFrameBytes});
  }

  // `change` sets what else the request asks for.
  template <typename Change>
  Outcome Do(Opcode opcode, std::string_view key, std::string_view value, Change change) {
    RequestView request{};
    request.header.opcode = static_cast<uint8_t>(opcode);
    request.header.request_id = ++last_id;
    request.header.key_len = static_cast<uint16_t>(key.size());
    request.header.value_len = value.size();
    request.key = key;
    request.value = value;
    change(request.header);
    const uint64_t hash = HashKey(key, region->geometry().hash_seed());
    if (!IsPulled(request)) return operations->Execute(request, hash);
    request.value = {};
    Reservation reservation;
    Outcome outcome;
    if (!operations->BeginPulled(request, hash, reservation, outcome)) return outcome;
    std::memcpy(reservation.value, value.data(), value.size());
    return operations->FinishPulled(request.header, reservation, true);
  }
  Outcome Do(Opcode opcode, std::string_view key, std::string_view value = {}) {
    return Do(opcode, key, value, [](RequestHeader&) {});
  }
  std::string ValueOf(std::string_view key) { return std::string(Do(Opcode::kGet, key).payload); }

  FakeClock clock;
  std::unique_ptr<Region> region;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Operations> operations;
  uint64_t last_id = 0;
};

ReplyStatus StatusOf(const Outcome& outcome) {
  return static_cast<ReplyStatus>(outcome.header.status);
}

void IfAbsent(RequestHeader& header) { header.flags |= kRequestIfAbsent; }
void IfPresent(RequestHeader& header) { header.flags |= kRequestIfPresent; }
auto IfVersion(uint64_t version) {
  return [version](RequestHeader& header) {
    header.flags |= kRequestIfVersion;
    header.compare_version = version;
  };
}
auto Expiry(uint64_t unix_us, uint8_t more_flags = 0) {
  return [=](RequestHeader& header) {
    header.flags |= kRequestExpiry | more_flags;
    header.expiry_unix_us = unix_us;
  };
}

}  // namespace

TEST_CASE(
    "Operations: a failed condition says which version is there; without an item: not found") {
  WritesRig rig;
  CHECK(StatusOf(rig.Do(Opcode::kPut, "k", "v", IfPresent)) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Do(Opcode::kPut, "k", "v", IfVersion(5))) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Do(Opcode::kDelete, "k", "", IfVersion(5))) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Do(Opcode::kTouch, "k", "", IfVersion(5))) == ReplyStatus::kNotFound);
  const Outcome put = rig.Do(Opcode::kPut, "k", "v", IfAbsent);
  REQUIRE(StatusOf(put) == ReplyStatus::kOk);
  for (const Opcode opcode : {Opcode::kPut, Opcode::kDelete, Opcode::kIncrement, Opcode::kAppend,
                              Opcode::kPrepend, Opcode::kTouch}) {
    const Outcome failed = rig.Do(opcode, "k", "", IfVersion(put.header.version - 1));
    CHECK(StatusOf(failed) == ReplyStatus::kConditionFailed);
    CHECK(failed.header.version == put.header.version);
    CHECK(failed.header.slot == kEmptySlot);
  }
  CHECK(rig.ValueOf("k") == "v");
}

TEST_CASE("Operations: expiry and user flags come back with GET and EXISTS, expiry with writes") {
  WritesRig rig;
  const uint64_t later = static_cast<uint64_t>(rig.clock.NowUnixUs()) + 1000;
  const Outcome put = rig.Do(Opcode::kPut, "k", "v", [&](RequestHeader& header) {
    Expiry(later, kRequestUserFlags)(header);
    header.user_flags = 77;
  });
  CHECK(put.header.expiry_unix_us == later);
  for (const Opcode opcode : {Opcode::kGet, Opcode::kExists}) {
    const Outcome reply = rig.Do(opcode, "k");
    CHECK(reply.header.expiry_unix_us == later);
    CHECK(reply.header.user_flags == 77);
    CHECK((reply.header.flags & kReplyUserFlags) != 0);
    CHECK(reply.header.version == put.header.version);
  }
  rig.clock.AdvanceMs(1);
  rig.shard->RefreshClock();
  CHECK(StatusOf(rig.Do(Opcode::kGet, "k")) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Do(Opcode::kExists, "k")) == ReplyStatus::kNotFound);
}

TEST_CASE("Operations: INCREMENT answers with the number, and why there is none") {
  WritesRig rig;
  const auto add = [&rig](std::string_view key, int64_t delta) {
    return rig.Do(Opcode::kIncrement, key, "", [delta](RequestHeader& header) {
      header.argument = static_cast<uint64_t>(delta);
    });
  };
  CHECK(add("n", -7).header.result == static_cast<uint64_t>(-7));
  const Outcome sum = add("n", 10);
  CHECK(sum.header.result == 3);
  CHECK(sum.header.slot != kEmptySlot);
  CHECK(rig.ValueOf("n") == "3");
  CHECK(StatusOf(add("n", INT64_MAX)) == ReplyStatus::kOverflow);
  rig.Do(Opcode::kPut, "n", "three");
  CHECK(StatusOf(add("n", 1)) == ReplyStatus::kNotNumber);
  CHECK(rig.ValueOf("n") == "three");
}

TEST_CASE("Operations: APPEND and PREPEND, with the piece in the frame or pulled") {
  for (const uint8_t pull : {uint8_t{0}, kRequestPull}) {
    WritesRig rig;
    const auto with = [pull](RequestHeader& header) { header.flags |= pull; };
    CHECK(StatusOf(rig.Do(Opcode::kAppend, "k", "middle", with)) == ReplyStatus::kOk);
    CHECK(StatusOf(rig.Do(Opcode::kAppend, "k", "-end", with)) == ReplyStatus::kOk);
    const Outcome last = rig.Do(Opcode::kPrepend, "k", "begin-", with);
    CHECK(StatusOf(last) == ReplyStatus::kOk);
    CHECK(last.header.slot != kEmptySlot);
    CHECK(rig.ValueOf("k") == "begin-middle-end");
    const Outcome long_one = rig.Do(Opcode::kAppend, "k", std::string(kMaxValue - 15, 'x'), with);
    CHECK(StatusOf(long_one) == ReplyStatus::kTooLarge);
    CHECK(long_one.header.value_len == kMaxValue);
    CHECK(rig.ValueOf("k") == "begin-middle-end");
    CHECK(StatusOf(rig.Do(Opcode::kAppend, "k", std::string(kMaxValue - 16, 'x'), with)) ==
          ReplyStatus::kOk);
    CHECK(StatusOf(rig.Do(Opcode::kAppend, "absent", "x", [&](RequestHeader& header) {
            with(header);
            IfPresent(header);
          })) == ReplyStatus::kNotFound);
    KVD_REQUIRE_OK(rig.shard->CheckInvariants());
  }
}

TEST_CASE("Operations: a TOUCH with value answers as GET does, inline or held") {
  WritesRig rig;
  const uint64_t later = static_cast<uint64_t>(rig.clock.NowUnixUs()) + 1000;
  rig.Do(Opcode::kPut, "small", "value");
  const Outcome small = rig.Do(Opcode::kTouch, "small", "", Expiry(later, kRequestWithValue));
  CHECK(small.payload == "value");
  CHECK(small.header.flags == kReplyInline);
  CHECK(small.header.expiry_unix_us == later);
  CHECK(rig.Do(Opcode::kTouch, "small", "", Expiry(later)).payload.empty());

  rig.Do(Opcode::kPut, "large", std::string(10'000, 'l'));
  const Outcome large = rig.Do(Opcode::kTouch, "large", "", Expiry(later, kRequestWithValue));
  CHECK(large.header.flags == kReplyHeld);
  CHECK(large.header.value_len == 10'000);
  CHECK(large.header.version == rig.Do(Opcode::kExists, "large").header.version);
  rig.Do(Opcode::kDelete, "large");
  CHECK(rig.shard->stats().heap_used_bytes >= 10'000);  // it is held
  rig.shard->Release(large.header.slot);
  CHECK(rig.shard->stats().heap_used_bytes == 0);

  // One that is over at once has no value any more.
  const Outcome past = rig.Do(Opcode::kTouch, "small", "", Expiry(1, kRequestWithValue));
  CHECK(StatusOf(past) == ReplyStatus::kOk);
  CHECK(past.header.flags == 0);
  CHECK(past.header.slot == kEmptySlot);
  CHECK(StatusOf(rig.Do(Opcode::kExists, "small")) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Do(Opcode::kTouch, "none", "", Expiry(later, kRequestWithValue))) ==
        ReplyStatus::kNotFound);
  KVD_REQUIRE_OK(rig.shard->CheckInvariants());
}

TEST_CASE("OnceOperations: writes that build on the value take effect once") {
  WritesRig rig;
  OnceOperations once(*rig.shard, OperationLimits{kMaxValue, kFrameBytes}, 8);
  const uint64_t hash = HashKey("k", rig.region->geometry().hash_seed());
  const auto send = [&](Opcode opcode, uint64_t id, std::string_view value, uint64_t session) {
    RequestView request{};
    request.header.opcode = static_cast<uint8_t>(opcode);
    request.header.request_id = id;
    request.header.key_len = 1;
    request.header.value_len = value.size();
    request.header.flags = session == 1 ? 0 : kRequestRepeat;
    request.header.argument = opcode == Opcode::kIncrement ? 5 : 0;
    request.key = "k";
    request.value = value;
    return once.Execute({1, session}, request, hash);
  };
  const Outcome first = send(Opcode::kIncrement, 1, "", 1);
  const Outcome append = send(Opcode::kAppend, 2, "0", 1);
  const Outcome refused = send(Opcode::kIncrement, 3, "", 1);
  CHECK(refused.header.result == 55);
  for (const uint64_t session : {uint64_t{2}, uint64_t{3}}) {
    CHECK(send(Opcode::kIncrement, 1, "", session).header.version == first.header.version);
    CHECK(send(Opcode::kIncrement, 1, "", session).header.result == 5);
    CHECK(send(Opcode::kAppend, 2, "0", session).header.version == append.header.version);
    CHECK(send(Opcode::kIncrement, 3, "", session).header.result == 55);
  }
  CHECK(rig.ValueOf("k") == "55");
}

}  // namespace kvd::test
