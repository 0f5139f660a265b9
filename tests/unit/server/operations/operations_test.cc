#include "server/operations/operations.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "server/operations/statistics.h"
#include "server/store/region.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kMaxValue = 1 << 20;
constexpr uint32_t kFrameBytes = 4608;

class OperationsRig {
 public:
  OperationsRig() {
    RegionOptions options;
    options.memory_bytes = 8 << 20;
    options.hugepages = HugepagePolicy::kOff;
    region = Region::Create(options).value();
    shard = Shard::Create(*region, 0, clock).value();
    operations = std::make_unique<Operations>(*shard, OperationLimits{kMaxValue, kFrameBytes});
  }

  RequestView Request(Opcode opcode, std::string_view key, std::string_view value = {}) {
    RequestView request{};
    request.header.opcode = static_cast<uint8_t>(opcode);
    request.header.request_id = ++last_id;
    request.header.key_len = static_cast<uint16_t>(key.size());
    request.header.value_len = value.size();
    request.key = key;
    request.value = value;
    return request;
  }

  Outcome Execute(const RequestView& request) {
    const Outcome outcome = operations->Execute(request, Hash(request.key));
    REQUIRE(outcome.header.request_id == request.header.request_id);
    REQUIRE(outcome.header.opcode == request.header.opcode);
    REQUIRE(sizeof(ReplyHeader) + outcome.payload.size() <= kFrameBytes);
    return outcome;
  }

  uint64_t Hash(std::string_view key) const { return HashKey(key, region->geometry().hash_seed()); }

  FakeClock clock;
  std::unique_ptr<Region> region;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Operations> operations;
  uint64_t last_id = 0;
};

ReplyStatus StatusOf(const Outcome& outcome) {
  return static_cast<ReplyStatus>(outcome.header.status);
}

}  // namespace

TEST_CASE("Operations: PUT, GET, EXISTS and DELETE of a small value") {
  OperationsRig rig;
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kGet, "k"))) == ReplyStatus::kNotFound);
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kDelete, "k"))) == ReplyStatus::kNotFound);
  const Outcome put = rig.Execute(rig.Request(Opcode::kPut, "k", "value"));
  CHECK(StatusOf(put) == ReplyStatus::kOk);
  CHECK(put.header.version != 0);
  CHECK(put.header.slot != kEmptySlot);

  const Outcome get = rig.Execute(rig.Request(Opcode::kGet, "k"));
  CHECK(StatusOf(get) == ReplyStatus::kOk);
  CHECK(get.header.flags == kReplyInline);
  CHECK(get.payload == "value");
  CHECK(get.header.value_len == 5);
  CHECK(get.header.version == put.header.version);
  CHECK(get.header.slot == put.header.slot);

  const Outcome exists = rig.Execute(rig.Request(Opcode::kExists, "k"));
  CHECK(StatusOf(exists) == ReplyStatus::kOk);
  CHECK(exists.header.version == put.header.version);
  CHECK(exists.payload.empty());
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kDelete, "k"))) == ReplyStatus::kOk);
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kExists, "k"))) == ReplyStatus::kNotFound);
}

TEST_CASE("Operations: a GET answers inline what fits the frame and holds the rest") {
  OperationsRig rig;
  const std::string fitting(kFrameBytes - sizeof(ReplyHeader), 'f');
  const std::string large(kFrameBytes - sizeof(ReplyHeader) + 1, 'l');
  rig.Execute(rig.Request(Opcode::kPut, "k", fitting));
  CHECK(rig.Execute(rig.Request(Opcode::kGet, "k")).payload == fitting);
  rig.Execute(rig.Request(Opcode::kPut, "k", large));
  const Outcome get = rig.Execute(rig.Request(Opcode::kGet, "k"));
  CHECK(get.header.flags == kReplyHeld);
  CHECK(get.payload.empty());
  CHECK(get.header.value_len == large.size());

  // Overwritten, it still lies there: DEAD with that version, until it is released.
  rig.Execute(rig.Request(Opcode::kPut, "k", "small"));
  const uint64_t bytes = ItemBytesOf(get.header.slot);
  std::string copy(bytes, '\0');
  std::memcpy(copy.data(), rig.region->At(LocationOf(get.header.slot)), bytes);
  ItemExpectation expected;
  expected.incarnation = rig.region->geometry().incarnation;
  expected.location = LocationOf(get.header.slot);
  expected.key = "k";
  expected.held_version = get.header.version;
  ItemView item;
  REQUIRE(JudgeItem(std::as_bytes(std::span(copy)), expected, item) == ItemVerdict::kCurrent);
  CHECK(item.value == large);
  rig.shard->Release(get.header.slot);
  KVD_REQUIRE_OK(rig.shard->CheckInvariants());
}

TEST_CASE("Operations: a value over the limit is kTooLarge with the limit; nothing changes") {
  OperationsRig rig;
  rig.Execute(rig.Request(Opcode::kPut, "k", "old"));
  RequestView request = rig.Request(Opcode::kPut, "k");
  request.header.value_len = kMaxValue + 1;
  request.header.flags = kRequestPull;
  Reservation reservation;
  Outcome outcome;
  REQUIRE_FALSE(rig.operations->BeginPulled(request, rig.Hash("k"), reservation, outcome));
  CHECK(StatusOf(outcome) == ReplyStatus::kTooLarge);
  CHECK(outcome.header.value_len == kMaxValue);
  CHECK(rig.Execute(rig.Request(Opcode::kGet, "k")).payload == "old");
}

TEST_CASE("Operations: a pulled PUT shows nothing before it is finished") {
  OperationsRig rig;
  RequestView request = rig.Request(Opcode::kPut, "k");
  request.header.value_len = 100'000;
  request.header.flags = kRequestPull;
  REQUIRE(IsPulled(request));
  Reservation reservation;
  Outcome outcome;
  REQUIRE(rig.operations->BeginPulled(request, rig.Hash("k"), reservation, outcome));
  REQUIRE(reservation.value_len == 100'000);
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kGet, "k"))) == ReplyStatus::kNotFound);
  std::memset(reservation.value, 'p', 100'000);
  const Outcome done = rig.operations->FinishPulled(request.header, reservation, true);
  CHECK(StatusOf(done) == ReplyStatus::kOk);
  CHECK(done.header.version != 0);
  const Outcome exists = rig.Execute(rig.Request(Opcode::kExists, "k"));
  CHECK(exists.header.value_len == 100'000);
  CHECK(exists.header.slot == done.header.slot);
}

TEST_CASE("Operations: a pull that failed leaves the old value and gives the memory back") {
  OperationsRig rig;
  rig.Execute(rig.Request(Opcode::kPut, "k", "old"));
  const uint64_t free_before = rig.region->free_bytes();
  RequestView request = rig.Request(Opcode::kPut, "k");
  request.header.value_len = 1 << 20;
  request.header.flags = kRequestPull;
  Reservation reservation;
  Outcome outcome;
  REQUIRE(rig.operations->BeginPulled(request, rig.Hash("k"), reservation, outcome));
  CHECK(StatusOf(rig.operations->FinishPulled(request.header, reservation, false)) ==
        ReplyStatus::kPullFailed);
  CHECK(rig.Execute(rig.Request(Opcode::kGet, "k")).payload == "old");
  CHECK(rig.region->free_bytes() == free_before);
  KVD_REQUIRE_OK(rig.shard->CheckInvariants());
}

TEST_CASE("Operations: a full region is kNoSpace, by either way of writing, and GETs go on") {
  OperationsRig rig;
  const std::string value(4000, 'v');
  int stored = 0;
  while (StatusOf(rig.Execute(rig.Request(Opcode::kPut, std::to_string(stored), value))) ==
         ReplyStatus::kOk) {
    ++stored;
    REQUIRE(stored < 10000);
  }
  CHECK(stored > 100);
  RequestView request = rig.Request(Opcode::kPut, "pulled");
  request.header.value_len = kMaxValue;
  request.header.flags = kRequestPull;
  Reservation reservation;
  Outcome outcome;
  REQUIRE_FALSE(rig.operations->BeginPulled(request, rig.Hash("pulled"), reservation, outcome));
  CHECK(StatusOf(outcome) == ReplyStatus::kNoSpace);
  for (int i = 0; i < stored; ++i) {
    REQUIRE(rig.Execute(rig.Request(Opcode::kGet, std::to_string(i))).payload == value);
  }
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kDelete, "0"))) == ReplyStatus::kOk);
  CHECK(StatusOf(rig.Execute(rig.Request(Opcode::kPut, "0", value))) == ReplyStatus::kOk);
}

TEST_CASE("Operations: a bad frame ends the session, one of a later version does not") {
  RequestView request{};
  request.header.request_id = 5;
  request.header.opcode = 1;
  Outcome outcome = AnswerBadFrame(request, "reserved field is not zero");
  CHECK(outcome.ends_session);
  CHECK(StatusOf(outcome) == ReplyStatus::kMalformed);
  CHECK(outcome.payload == "reserved field is not zero");
  CHECK(outcome.header.flags == kReplyErrorText);
  request.header.opcode = 200;
  outcome = AnswerBadFrame(request, "unknown opcode");
  CHECK_FALSE(outcome.ends_session);
  CHECK(StatusOf(outcome) == ReplyStatus::kUnsupported);
  CHECK(AnswerBadFrame(RequestView{}, "frame is shorter than a request header").ends_session);
}

TEST_CASE("Operations: PING echoes, and the statistics come in parts") {
  RequestView request{};
  request.header.request_id = 1;
  request.header.opcode = static_cast<uint8_t>(Opcode::kPing);
  request.value = "echo";
  request.header.value_len = 4;
  CHECK(AnswerPing(request, 17).payload == "echo");
  CHECK(AnswerPing(request, 17).header.flags == kReplyInline);
  CHECK(AnswerPing(request, 17).header.result == 17);

  Random random(Seed());
  std::string text(10'000, '\0');
  for (char& c : text) c = static_cast<char>(random.Between('a', 'z'));
  std::string joined;
  while (joined.size() < text.size()) {
    request.header.argument = joined.size();
    const Outcome part = AnswerText(request, text, kFrameBytes);
    REQUIRE(part.header.value_len == text.size());
    REQUIRE_FALSE(part.payload.empty());
    joined.append(part.payload);
  }
  CHECK(joined == text);
  for (const uint64_t beyond : {uint64_t{10'000}, uint64_t{10'001}, ~uint64_t{0}}) {
    request.header.argument = beyond;
    CHECK(AnswerText(request, text, kFrameBytes).payload.empty());
  }
}

TEST_CASE(
    "Operations: any bytes as a frame give an answer or an error, and the store stays whole") {
  OperationsRig rig;
  Random random(Seed());
  std::map<ReplyStatus, int> seen;
  for (int i = 0; i < 50'000; ++i) {
    std::string frame(random.Between(0, 200), '\0');
    for (char& c : frame) c = static_cast<char>(random.Next());
    if (frame.size() >= sizeof(RequestHeader) && !random.OneIn(10)) {
      RequestHeader header{};
      header.opcode = static_cast<uint8_t>(random.Between(0, kOpcodeLast + 1));
      header.flags = static_cast<uint8_t>(random.OneIn(4) ? random.Next() : 0);
      header.request_id = random.Next();
      header.key_len = static_cast<uint16_t>(
          random.OneIn(8) ? random.Next() : random.Uniform(frame.size() - sizeof(header) + 1));
      header.value_len =
          random.OneIn(8) ? random.Next() : frame.size() - sizeof(header) - header.key_len;
      header.argument = random.Next();
      std::memcpy(frame.data(), &header, sizeof(header));
    }
    RequestView request;
    const FrameError error = DecodeRequest(std::as_bytes(std::span(frame)), request);
    if (error != nullptr) {
      ++seen[StatusOf(AnswerBadFrame(request, error))];
    } else if (!HasKey(request)) {
      ++seen[ReplyStatus::kOk];
    } else if (IsPulled(request)) {
      Reservation reservation;
      Outcome outcome;
      if (rig.operations->BeginPulled(request, rig.Hash(request.key), reservation, outcome)) {
        outcome = rig.operations->FinishPulled(request.header, reservation, random.OneIn(2));
      }
      ++seen[StatusOf(outcome)];
    } else {
      ++seen[StatusOf(rig.Execute(request))];
    }
  }
  CHECK(seen[ReplyStatus::kOk] > 0);
  CHECK(seen[ReplyStatus::kMalformed] > 0);
  CHECK(seen[ReplyStatus::kUnsupported] > 0);
  KVD_REQUIRE_OK(rig.shard->CheckInvariants());
}

TEST_CASE("Statistics: one name and value a line, counters of all pollers summed") {
  RequestCounters one;
  RequestCounters two;
  one.requests[static_cast<size_t>(Opcode::kPut)].Add(3);
  two.requests[static_cast<size_t>(Opcode::kPut)].Add(4);
  two.malformed.Add(1);
  const RequestCounters* const both[] = {&one, &two};
  StatisticList list;
  list.Text("version", "1.2");
  AddRequests(both, list);
  ShardStats a;
  a.items = 5;
  ShardStats b;
  b.items = 6;
  AddShards(a + b, list);
  AddProcess(list);
  const std::string lines = list.Lines();
  CHECK_THAT(lines, Catch::StartsWith("version 1.2\n"));
  CHECK_THAT(lines, Catch::Contains("\nrequests_put 7\n"));
  CHECK_THAT(lines, Catch::Contains("\nmalformed 1\n"));
  CHECK_THAT(lines, Catch::Contains("\nitems 11\n"));
  CHECK_THAT(lines, Catch::Contains("\ncpu_user_us "));
}

TEST_CASE("Statistics: stalls of each poller are metrics of its own; their sum is a statistic") {
  std::vector<RequestCounters> counters(kShardsMax);
  counters[0].stalls.Add(2);
  counters[0].stalled_ns.Add(7'000'000);
  counters[0].longest_stall_ns.Raise(5'000'000);
  counters[0].longest_stall_ns.Raise(2'000'000);
  counters[255].stalls.Add(1);
  counters[255].stalled_ns.Add(9'000'000);
  counters[255].longest_stall_ns.Raise(9'000'000);
  std::vector<PollerProcessor> pollers;
  for (const RequestCounters& of : counters) pollers.push_back({&of, 1'000'000});
  StatisticList list;
  AddStalls(pollers, list);
  CHECK(list.Lines() ==
        "poller_stalls 3\npoller_stalled_us 16000\npoller_longest_stall_us 9000\n"
        "poller_queued_us 256000\n");
  const auto of_poller = [&](std::string_view metric, std::string_view poller) {
    for (const Statistic& row : list.rows()) {
      if (row.metric.name == metric && row.metric.label_value == poller) return row.number;
    }
    return uint64_t{12345};
  };
  CHECK(of_poller("kvd_poller_stalls_total", "0") == 2);
  CHECK(of_poller("kvd_poller_stalls_total", "10") == 0);
  CHECK(of_poller("kvd_poller_stalled_seconds_total", "255") == 9000);
  CHECK(of_poller("kvd_poller_longest_stall_seconds", "0") == 5000);
  CHECK(of_poller("kvd_poller_queued_seconds_total", "7") == 1000);
}

}  // namespace kvd::test
