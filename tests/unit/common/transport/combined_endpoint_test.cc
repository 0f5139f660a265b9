#include "common/transport/combined_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

// An endpoint that gives out what a test put into it and notes what it was told.
class FakeEndpoint final : public ServerEndpoint {
 public:
  size_t Poll(std::span<ServerEvent> events) override {
    ++polls;
    size_t count = 0;
    for (; count < events.size() && !waiting.empty(); ++count) {
      events[count] = ServerEvent{};
      events[count].channel = ChannelId{waiting.front()};
      waiting.pop_front();
    }
    return count;
  }
  void Reply(ChannelId channel, const FrameParts&) override { Note("reply", channel); }
  void Flush() override { told.push_back("flush"); }
  absl::Status Pull(ChannelId channel, const PullSource&, std::byte*, uint64_t pull_id) override {
    Note("pull " + std::to_string(pull_id), channel);
    return absl::OkStatus();
  }
  void Close(ChannelId channel, const absl::Status& reason) override {
    Note("close " + std::string(reason.message()), channel);
  }
  bool PrepareToSleep() override { return may_sleep; }
  int event_fd() const override { return wake.get(); }

  void Note(const std::string& what, ChannelId channel) {
    told.push_back(what + " " + std::to_string(static_cast<uint64_t>(channel)));
  }

  std::deque<uint64_t> waiting;
  std::vector<std::string> told;
  bool may_sleep = true;
  int polls = 0;
  UniqueFd wake{eventfd(0, EFD_CLOEXEC)};
};

struct Fixture {
  Fixture() {
    auto made = CombinedEndpoint::Create({&shm, &rdma});
    KVD_REQUIRE_OK(made);
    both = *std::move(made);
  }

  FakeEndpoint shm;
  FakeEndpoint rdma;
  std::unique_ptr<CombinedEndpoint> both;
};

}  // namespace

TEST_CASE("CombinedEndpoint: answers go to the endpoint that the channel came from") {
  Fixture fixture;
  fixture.shm.waiting = {7};
  fixture.rdma.waiting = {7};
  ServerEvent events[8];
  REQUIRE(fixture.both->Poll(events) == 2);
  REQUIRE(events[0].channel != events[1].channel);
  fixture.both->Reply(events[0].channel, {});
  KVD_REQUIRE_OK(fixture.both->Pull(events[1].channel, {}, nullptr, 3));
  fixture.both->Close(events[1].channel, absl::UnavailableError("gone"));
  fixture.both->Flush();
  REQUIRE(fixture.shm.told == std::vector<std::string>{"reply 7", "flush"});
  REQUIRE(fixture.rdma.told == std::vector<std::string>{"pull 3 7", "close gone 7", "flush"});
}

TEST_CASE("CombinedEndpoint: a busy endpoint does not starve the other") {
  Fixture fixture;
  for (uint64_t i = 0; i < 100; ++i) fixture.shm.waiting.push_back(i);
  fixture.rdma.waiting = {1};
  ServerEvent events[4];
  for (int round = 0; round < 2; ++round) REQUIRE(fixture.both->Poll(events) == 4);
  REQUIRE(fixture.rdma.waiting.empty());
  REQUIRE(fixture.rdma.polls == 2);
}

TEST_CASE("CombinedEndpoint: sleeps only if every endpoint may, and wakes for each") {
  Fixture fixture;
  REQUIRE(fixture.both->PrepareToSleep());
  fixture.rdma.may_sleep = false;
  REQUIRE_FALSE(fixture.both->PrepareToSleep());

  pollfd wait{fixture.both->event_fd(), POLLIN, 0};
  REQUIRE(poll(&wait, 1, 0) == 0);
  const uint64_t one = 1;
  for (FakeEndpoint* part : {&fixture.shm, &fixture.rdma}) {
    REQUIRE(write(part->wake.get(), &one, sizeof(one)) == sizeof(one));
    REQUIRE(poll(&wait, 1, 0) == 1);
    uint64_t rung = 0;
    REQUIRE(read(part->wake.get(), &rung, sizeof(rung)) == sizeof(rung));
    REQUIRE(poll(&wait, 1, 0) == 0);
  }
}

}  // namespace kvd::test
