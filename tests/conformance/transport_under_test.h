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
};

// A server of `region` with so many endpoints.
std::unique_ptr<TransportUnderTest> MakeTransportUnderTest(const FakeRegion& region,
                                                           size_t pollers);

}  // namespace kvd::test
