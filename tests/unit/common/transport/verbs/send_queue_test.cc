// Requests are retired in order, by the completions of those few that are signaled.
#include "common/transport/verbs/send_queue.h"

#include <cerrno>
#include <vector>

#include "tests/support/test.h"

namespace kvd::verbs {
namespace {

// A queue pair of a device that takes `takes` requests of each chain, and refuses the next.
struct StingyDevice {
  StingyDevice() {
    context.ops.post_send = [](ibv_qp* on, ibv_send_wr* chain, ibv_send_wr** bad) {
      auto& device = *static_cast<StingyDevice*>(on->qp_context);
      for (size_t taken = 0; chain != nullptr; chain = chain->next, ++taken) {
        if (taken == device.takes) {
          *bad = chain;
          return ENOMEM;
        }
        device.posted.push_back(chain->wr_id);
      }
      return 0;
    };
    qp.context = &context;
    qp.qp_context = this;
  }

  ibv_context context{};
  ibv_qp qp{};
  size_t takes = 0;
  std::vector<uint64_t> posted;
};

}  // namespace

TEST_CASE("SendQueue: of a chain that is refused in the middle, what was taken is under way") {
  StingyDevice device;
  device.takes = 2;
  SendQueue queue(8, 1);
  std::vector<uint64_t> done;
  const auto note = [&](uint64_t cookie) { done.push_back(cookie); };
  for (uint64_t cookie = 10; cookie < 15; ++cookie) queue.AddRead({nullptr, 0, 0}, 0, 0, cookie);
  CHECK_FALSE(queue.Post(&device.qp).ok());
  CHECK(queue.under_way());
  CHECK(queue.unposted());
  CHECK_FALSE(queue.Retire(2, note));  // refused: it cannot complete
  CHECK(queue.Retire(1, note));
  CHECK(done == std::vector<uint64_t>{10, 11});
  CHECK_FALSE(queue.under_way());

  // Nothing goes out twice.
  device.takes = 8;
  CHECK(queue.Post(&device.qp).ok());
  CHECK(device.posted == std::vector<uint64_t>{0, 1, 2, 3, 4});
  CHECK(queue.Retire(4, note));
  CHECK(done == std::vector<uint64_t>{10, 11, 12, 13, 14});
  CHECK(queue.empty());
}

TEST_CASE("SendQueue: a chain that is refused at its head leaves nothing under way") {
  StingyDevice device;
  SendQueue queue(4, 1);
  queue.AddRead({nullptr, 0, 0}, 0, 0, 10);
  CHECK_FALSE(queue.Post(&device.qp).ok());
  CHECK_FALSE(queue.under_way());
  CHECK_FALSE(queue.empty());
  std::vector<uint64_t> done;
  queue.RetireAll([&](uint64_t cookie) { done.push_back(cookie); });
  CHECK(done == std::vector<uint64_t>{10});
  CHECK(queue.empty());
}

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
