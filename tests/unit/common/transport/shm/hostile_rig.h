// A server over shared memory with one honest client, for tests of clients that are not.
#pragma once

#include <memory>
#include <string>

#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/support/temp_dir.h"

namespace kvd::test {

// The honest client checks in the end that it is still served.
class HostileRig {
 public:
  explicit HostileRig(EchoServer::Mode mode = EchoServer::Mode::kSleepy) {
    ShmServerTransport::Options options;
    options.region_fd = region.fd();
    transport_ = ShmServerTransport::Create(SocketClaim::Take(path).value(), options).value();
    KVD_REQUIRE_OK(transport_->Start(admission));
    server = std::make_unique<EchoServer>(transport_->endpoint(0), mode);
    honest_ = ShmClientChannel::Connect(path, MakeHello(), DeadlineNs()).value();
    CheckHonest();
  }

  void CheckHonest() {
    for (int i = 0; i < 20; ++i) {
      KVD_REQUIRE_OK(honest_->Send(Frame("honest")));
      REQUIRE(Receive(*honest_).value() == "honest");
    }
  }

  // Every session but the honest one is gone.
  void CheckAllGone() {
    CheckHonest();
    while (admission.live() > 1) CheckHonest();
    CHECK(admission.gone_twice() == 0);
  }

  TempDir dir;
  std::string path = dir.Join("kvd.sock");
  FakeRegion region;
  FakeAdmission admission{region, 16, 4608};

 private:
  std::unique_ptr<ShmServerTransport> transport_;

 public:
  std::unique_ptr<EchoServer> server;

 private:
  std::unique_ptr<ClientChannel> honest_;
};

}  // namespace kvd::test
