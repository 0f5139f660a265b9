// Requests are retired in order, by the completions of those few that are signaled.
#include "common/transport/verbs/send_queue.h"

#include <vector>

#include "tests/support/test.h"

namespace kvd::verbs {

TEST_CASE("SendQueue: a number that was never posted retires nothing") {
  SendQueue queue(4, 2);
  std::vector<uint64_t> done;
  const auto note = [&](uint64_t cookie) { done.push_back(cookie); };
  CHECK_FALSE(queue.Retire(0, note));
  queue.AddSend({nullptr, 0, 0}, false, 10);
  CHECK_FALSE(queue.Retire(0, note));  // added, not posted
  CHECK_FALSE(queue.Retire(~uint64_t{0}, note));
  CHECK(done.empty());
  CHECK(queue.unposted());
  CHECK(queue.room() == 3);
}

TEST_CASE("SendQueue: what can complete no more is retired whole, in order") {
  SendQueue queue(4, 2);
  std::vector<uint64_t> done;
  for (uint64_t cookie = 1; cookie <= 3; ++cookie) queue.AddSend({nullptr, 0, 0}, false, cookie);
  queue.RetireAll([&](uint64_t cookie) { done.push_back(cookie); });
  CHECK(done == std::vector<uint64_t>{1, 2, 3});
  CHECK(queue.empty());
  CHECK(queue.room() == 4);
  CHECK_FALSE(queue.Retire(2, [](uint64_t) { FAIL("retired twice"); }));
}

}  // namespace kvd::verbs
