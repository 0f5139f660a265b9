// A started server of the transport under test, what a client says to it, and the small steps that
// all cases share.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "tests/conformance/fake_admission.h"
#include "tests/conformance/fake_region.h"
#include "tests/conformance/pumped_endpoint.h"
#include "tests/conformance/transport_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {

inline int64_t DeadlineNs(int64_t seconds = 60) {
  return RealClock::Get().NowMonotonicNs() + seconds * 1'000'000'000;
}

inline Hello MakeHello(uint32_t credits = 16) {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.client_id = 77;
  hello.credits_wanted = credits;
  std::memcpy(hello.name, "conformance", 11);
  return hello;
}

inline FrameParts Frame(std::string_view text) {
  return FrameParts{std::as_bytes(std::span(text)), {}, {}};
}

inline std::string_view Text(std::span<const std::byte> frame) {
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

class Rig {
 public:
  static constexpr uint32_t kCredits = 16;
  static constexpr uint32_t kFrameBytes = 4608;

  explicit Rig(size_t pollers = 1) : transport_(MakeTransportUnderTest(region, pollers)) {
    KVD_REQUIRE_OK(server().Start(admission));
    for (size_t i = 0; i < pollers; ++i) {
      endpoints_.push_back(std::make_unique<PumpedEndpoint>(server().endpoint(i)));
    }
  }

  ServerTransport& server() { return transport_->server(); }
  TransportUnderTest& transport() { return *transport_; }
  ServerEndpoint& endpoint(size_t poller = 0) { return *endpoints_.at(poller); }

  absl::StatusOr<std::unique_ptr<ClientChannel>> TryConnect(const Hello& hello = MakeHello()) {
    if (!transport_->connect_needs_polling()) return transport_->Connect(hello, DeadlineNs());
    absl::StatusOr<std::unique_ptr<ClientChannel>> channel = absl::UnknownError("not yet");
    std::atomic<bool> done{false};
    std::thread connecting([&] {
      channel = transport_->Connect(hello, DeadlineNs());
      done = true;
    });
    while (!done) {
      for (const auto& endpoint : endpoints_) endpoint->Pump();
      sched_yield();
    }
    connecting.join();
    return channel;
  }
  std::unique_ptr<ClientChannel> Connect(const Hello& hello = MakeHello()) {
    auto channel = TryConnect(hello);
    KVD_REQUIRE_OK(channel);
    return *std::move(channel);
  }

  FakeRegion region;
  FakeAdmission admission{region, kCredits, kFrameBytes};

 private:
  std::unique_ptr<TransportUnderTest> transport_;
  std::vector<std::unique_ptr<PumpedEndpoint>> endpoints_;
};

// Drives one endpoint from the test's own thread, one event at a time.
class Pump {
 public:
  struct Event {
    ServerEvent::Kind kind;
    ChannelId channel;
    std::string frame;
    uint64_t pull_id;
    bool ok;
    uint64_t session_id;
    std::string name;  // of kOpened
    absl::Status error;
  };

  explicit Pump(ServerEndpoint& endpoint) : endpoint_(endpoint) {}

  // The next event; waits for it without bound (a test that hangs here has lost one).
  Event Next() {
    while (queue_.empty()) Poll();
    Event event = queue_.front();
    queue_.erase(queue_.begin());
    return event;
  }

  Event Next(ServerEvent::Kind kind) {
    Event event = Next();
    REQUIRE(event.kind == kind);
    return event;
  }

  // Polls a good number of times; true if nothing came.
  bool Quiet() {
    for (int i = 0; i < 1000; ++i) Poll();
    return queue_.empty();
  }

  void Reply(ChannelId channel, std::string_view text) {
    endpoint_.Reply(channel, Frame(text));
    endpoint_.Flush();
  }

 private:
  void Poll() {
    std::array<ServerEvent, 32> events;
    const size_t count = endpoint_.Poll(events);
    for (const ServerEvent& event : std::span(events).first(count)) {
      queue_.push_back(Event{event.kind, event.channel, std::string(Text(event.frame)),
                             event.pull_id, event.ok, event.session_id,
                             event.hello == nullptr ? "" : event.hello->name,
                             event.error == nullptr ? absl::OkStatus() : *event.error});
    }
  }

  ServerEndpoint& endpoint_;
  std::vector<Event> queue_;
};

// The next reply, waiting for it.
inline absl::StatusOr<std::string> Receive(ClientChannel& channel) {
  for (;;) {
    const auto reply = channel.PollReply();
    if (!reply.empty()) return std::string(Text(reply));
    if (const absl::Status waited = channel.Wait(DeadlineNs()); !waited.ok()) return waited;
  }
}

}  // namespace kvd::test
