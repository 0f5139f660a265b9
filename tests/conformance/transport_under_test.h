// What a transport provides so that the conformance suite can run over it. One library that defines
// MakeTransportUnderTest makes one test of the suite (BUILD.bazel).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/client_channel.h"
#include "common/transport/server_endpoint.h"
#include "tests/conformance/fake_region.h"

namespace kvd::test {

class TransportUnderTest {
 public:
  virtual ~TransportUnderTest() = default;

  // Not yet started.
  virtual ServerTransport& server() = 0;

  // A client of server().
  virtual absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(const Hello& hello,
                                                                 int64_t deadline_ns) = 0;

  // A round trip takes many system calls, so cases with thousands of them do fewer.
  virtual bool slow() const { return false; }

  // A handshake ends only while the endpoints are polled.
  virtual bool connect_needs_polling() const { return false; }

  // Requests of all channels are taken in the order of their arrival, so one that floods is only
  // bounded by its credits.
  virtual bool serves_in_order_of_arrival() const { return false; }

  // A pull from where no buffer is ends the session that asked for it; otherwise it fails alone.
  virtual bool bad_pull_ends_session() const { return false; }
};

// A server of `region` with so many endpoints.
std::unique_ptr<TransportUnderTest> MakeTransportUnderTest(const FakeRegion& region,
                                                           size_t pollers);

}  // namespace kvd::test
