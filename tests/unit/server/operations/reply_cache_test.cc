// Writes that are sent more than once: what was executed is answered again, and nothing is executed
// twice.
#include "server/operations/reply_cache.h"

#include <cstring>
#include <memory>
#include <string>

#include "common/base/hash.h"
#include "server/operations/once_operations.h"
#include "server/store/region.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Verdict = ReplyCache::Verdict;

RequestHeader Write(uint64_t id, uint8_t flags = 0) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.request_id = id;
  header.flags = flags;
  return header;
}

Outcome OutcomeOf(uint64_t id, std::string_view payload = {}) {
  Outcome outcome;
  outcome.header.request_id = id;
  outcome.header.version = id * 10;
  outcome.payload = payload;
  return outcome;
}

}  // namespace

TEST_CASE(
    "ReplyCache: a repeat of what was executed gets the reply of then, any other is to be "
    "executed") {
  ReplyCache cache(4);
  Outcome outcome;
  CHECK(cache.ClientOf(1).Judge(1, Write(7), outcome) == Verdict::kExecute);
  cache.ClientOf(1).Remember(OutcomeOf(7, "payload"), 4);
  REQUIRE(cache.ClientOf(1).Judge(2, Write(7, kRequestRepeat), outcome) == Verdict::kAnswered);
  CHECK(outcome.header.version == 70);
  CHECK(outcome.payload == "payload");
  CHECK_FALSE(outcome.ends_session);
  CHECK(cache.ClientOf(1).Judge(2, Write(8, kRequestRepeat), outcome) == Verdict::kExecute);
  CHECK(cache.ClientOf(2).Judge(3, Write(7, kRequestRepeat), outcome) == Verdict::kExecute);
}

TEST_CASE("ReplyCache: a repeat of a TOUCH is told what became of it, but gets no value again") {
  for (const uint8_t brings : {kReplyInline, kReplyHeld}) {
    ReplyCache cache(4);
    Outcome outcome = OutcomeOf(7, "value");
    outcome.header.flags = static_cast<uint8_t>(brings | kReplyUserFlags);
    cache.ClientOf(1).Remember(outcome, 4);
    REQUIRE(cache.ClientOf(1).Judge(2, Write(7, kRequestRepeat), outcome) == Verdict::kAnswered);
    CHECK(outcome.header.flags == kReplyUserFlags);
    CHECK(outcome.header.version == 70);
    CHECK(outcome.payload.empty());
  }
}

TEST_CASE("ReplyCache: a session that its client has replaced executes nothing more") {
  ReplyCache cache(4);
  Outcome outcome;
  CHECK(cache.ClientOf(1).Judge(5, Write(1), outcome) == Verdict::kExecute);
  CHECK(cache.ClientOf(1).Judge(6, Write(1, kRequestRepeat), outcome) == Verdict::kExecute);
  CHECK(cache.ClientOf(1).Judge(5, Write(1), outcome) == Verdict::kSuperseded);
  CHECK(cache.ClientOf(1).Judge(5, Write(2), outcome) == Verdict::kSuperseded);
  CHECK(cache.ClientOf(2).Judge(4, Write(1), outcome) == Verdict::kExecute);
}

TEST_CASE("ReplyCache: as many replies of a client as it has credits, the latest ones") {
  ReplyCache cache(4);
  for (uint64_t id = 1; id <= 10; ++id) cache.ClientOf(1).Remember(OutcomeOf(id), 4);
  Outcome outcome;
  for (uint64_t id = 1; id <= 10; ++id) {
    CHECK(cache.ClientOf(1).Judge(2, Write(id, kRequestRepeat), outcome) ==
          (id > 6 ? Verdict::kAnswered : Verdict::kExecute));
  }
}

TEST_CASE("ReplyCache: forgets the clients that are not known any more") {
  ReplyCache cache(4);
  for (uint64_t client = 1; client <= 6; ++client) cache.ClientOf(client).Remember(OutcomeOf(1), 4);
  cache.Sweep([](uint64_t client) { return client % 2 == 0; });
  CHECK(cache.clients() == 3);
  Outcome outcome;
  CHECK(cache.ClientOf(2).Judge(2, Write(1, kRequestRepeat), outcome) == Verdict::kAnswered);
  CHECK(cache.ClientOf(1).Judge(2, Write(1, kRequestRepeat), outcome) == Verdict::kExecute);
}

TEST_CASE(
    "OnceOperations: a pulled PUT whose client came back meanwhile leaves the key to the repeat") {
  RegionOptions options;
  options.memory_bytes = 8 << 20;
  options.hugepages = HugepagePolicy::kOff;
  FakeClock clock;
  const auto region = Region::Create(options).value();
  const auto shard = Shard::Create(*region, 0, clock).value();
  OnceOperations operations(*shard, OperationLimits{1 << 20, 4608}, 4);
  const uint64_t hash = HashKey("k", region->geometry().hash_seed());
  RequestView request{};
  request.header = Write(1, kRequestPull);
  request.header.key_len = 1;
  request.header.value_len = 6;
  request.key = "k";
  Reservation first;
  Reservation second;
  Outcome outcome;
  REQUIRE(operations.BeginPulled({1, 1}, request, hash, first, outcome));
  request.header.flags |= kRequestRepeat;
  REQUIRE(operations.BeginPulled({1, 2}, request, hash, second, outcome));
  std::memcpy(second.value, "second", 6);
  outcome = operations.FinishPulled({1, 2}, request.header, second, true);
  CHECK(outcome.header.status == static_cast<uint16_t>(ReplyStatus::kOk));
  std::memcpy(first.value, "first!", 6);
  outcome = operations.FinishPulled({1, 1}, Write(1, kRequestPull), first, true);
  CHECK(outcome.ends_session);
  ItemView item;
  Slot slot;
  REQUIRE(shard->Find("k", hash, item, slot) == StoreStatus::kOk);
  CHECK(item.value == "second");
  // A third try finds the reply, before anything is pulled for it.
  Reservation third;
  REQUIRE_FALSE(operations.BeginPulled({1, 2}, request, hash, third, outcome));
  CHECK(outcome.header.status == static_cast<uint16_t>(ReplyStatus::kOk));
  // Reads change nothing and are answered whatever the session.
  request.header = Write(9);
  request.header.opcode = static_cast<uint8_t>(Opcode::kGet);
  CHECK(operations.Execute({1, 1}, request, hash).payload == "second");
  CHECK(shard->CheckInvariants().ok());
}

}  // namespace kvd::test
