#include "client/internal/reply_status.h"

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

ReplyView ReplyOf(ReplyStatus status) {
  ReplyView reply{};
  reply.header.status = static_cast<uint16_t>(status);
  return reply;
}

TEST_CASE("ReplyStatus: want of room says what to do under the policy that is in force") {
  const ReplyView reply = ReplyOf(ReplyStatus::kNoSpace);
  const absl::Status refusing = StatusOfReply(reply, {.server_evicts = false});
  KVD_REQUIRE_CODE(refusing, kResourceExhausted);
  CHECK_THAT(test::MessageOf(refusing), Catch::Contains("--evict=none") &&
                                            Catch::EndsWith("; delete something, or start kvd with "
                                                            "a larger --memory, or with "
                                                            "--evict=lru"));
  CHECK_THAT(test::MessageOf(refusing), Catch::Contains("'kvcli stat largest_free_run_bytes'"));
  const absl::Status evicting = StatusOfReply(reply, {.server_evicts = true});
  KVD_REQUIRE_CODE(evicting, kResourceExhausted);
  CHECK_THAT(test::MessageOf(evicting),
             Catch::Contains("--evict=lru") && Catch::EndsWith("; store shorter values, or start "
                                                               "kvd with a larger --memory or "
                                                               "fewer --pollers"));
}

TEST_CASE("ReplyStatus: what was not answered may take effect only if it was a write") {
  const auto withdrawn = [](Opcode opcode) {
    return StatusOfWithdrawn(RequestQueue::Progress::kSent, static_cast<uint8_t>(opcode),
                             absl::OkStatus());
  };
  for (const Opcode opcode : {Opcode::kPut, Opcode::kDelete, Opcode::kIncrement, Opcode::kTouch}) {
    KVD_REQUIRE_CODE(withdrawn(opcode), kDeadlineExceeded);
    CHECK_THAT(test::MessageOf(withdrawn(opcode)),
               Catch::EndsWith("it may still take effect: get the key before you try again"));
  }
  CHECK_THAT(test::MessageOf(withdrawn(Opcode::kFlush)),
             Catch::EndsWith("it may still take effect, and may be done again"));
  for (const Opcode opcode : {Opcode::kPing, Opcode::kStat, Opcode::kGet}) {
    KVD_REQUIRE_CODE(withdrawn(opcode), kDeadlineExceeded);
    CHECK(test::MessageOf(withdrawn(opcode)) == "sent, and not answered in time");
  }
}

}  // namespace
}  // namespace kvd
