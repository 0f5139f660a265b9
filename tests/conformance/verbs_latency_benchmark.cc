// Round trips of the verbs transport, to be compared with ib_read_lat and ib_send_lat on the same
// devices in the same boot. Prints one line for each: p50, p99 and the longest, in microseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"

namespace kvd::test {
namespace {

constexpr int kRounds = 5000;

void Measure(const char* name, const std::function<void()>& round) {
  std::vector<int64_t> took_ns;
  for (int i = 0; i < kRounds; ++i) {
    const int64_t start_ns = RealClock::Get().NowMonotonicNs();
    round();
    took_ns.push_back(RealClock::Get().NowMonotonicNs() - start_ns);
  }
  std::sort(took_ns.begin(), took_ns.end());
  const auto us = [&](size_t at) { return static_cast<double>(took_ns.at(at)) / 1000; };
  std::printf("%-24s p50 %8.1f  p90 %8.1f  p99 %8.1f  max %8.1f us\n", name, us(kRounds / 2),
              us(kRounds * 9 / 10), us(kRounds * 99 / 100), us(kRounds - 1));
}

void MeasureRead(ClientChannel& client, const TransferBuffer& buffer, const char* name,
                 uint64_t bytes) {
  Measure(name, [&] {
    const ReadOp op{RegionOffset{FakeRegion::kDataOffset}, bytes, buffer.bytes.data(), 1};
    KVD_REQUIRE_OK(client.PostReads({&op, 1}));
    ReadCompletion done[1];
    while (client.PollReads(done) == 0) KVD_REQUIRE_OK(client.Wait(DeadlineNs()));
  });
}

void MeasurePing(ClientChannel& client, const char* name) {
  const std::string text(64, 'x');
  Measure(name, [&] {
    KVD_REQUIRE_OK(client.Send(Frame(text)));
    REQUIRE(Receive(client).ok());
  });
}

TEST_CASE("Latency of READs and requests") {
  Rig rig;
  {
    EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
    const auto client = rig.Connect();
    auto buffer = client->Allocate(1 << 20);
    KVD_REQUIRE_OK(buffer);
    MeasureRead(*client, *buffer, "READ 64", 64);
    MeasureRead(*client, *buffer, "READ 1024", 1024);
    MeasureRead(*client, *buffer, "READ 4096", 4096);
    MeasurePing(*client, "request, server sleeps");
  }
  Rig busy;
  EchoServer server(busy.endpoint(), EchoServer::Mode::kBusy, busy.region.landing());
  const auto client = busy.Connect();
  MeasurePing(*client, "request, server polls");
}

}  // namespace
}  // namespace kvd::test
