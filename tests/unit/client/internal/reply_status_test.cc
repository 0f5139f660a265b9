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
  const absl::Status evicting = StatusOfReply(reply, {.server_evicts = true});
  KVD_REQUIRE_CODE(evicting, kResourceExhausted);
  CHECK_THAT(test::MessageOf(evicting),
             Catch::Contains("--evict=lru") && Catch::EndsWith("; store shorter values, or start "
                                                               "kvd with a larger --memory or "
                                                               "fewer --pollers"));
}

}  // namespace
}  // namespace kvd
