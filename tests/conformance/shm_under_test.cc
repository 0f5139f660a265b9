#include <utility>

#include "common/base/check.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "tests/conformance/transport_under_test.h"
#include "tests/support/temp_dir.h"

namespace kvd::test {
namespace {

class ShmUnderTest : public TransportUnderTest {
 public:
  ShmUnderTest(const FakeRegion& region, size_t pollers) {
    auto claim = SocketClaim::Take(path_);
    KVD_CHECK(claim.ok());
    ShmServerTransport::Options options;
    options.region_fd = region.fd();
    options.pollers = pollers;
    server_ = ShmServerTransport::Create(*std::move(claim), options).value();
  }

  ServerTransport& server() override { return *server_; }

  absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(const Hello& hello,
                                                         int64_t deadline_ns) override {
    return ShmClientChannel::Connect(path_, hello, deadline_ns);
  }

 private:
  TempDir dir_;
  std::string path_ = dir_.Join("kvd.sock");
  std::unique_ptr<ShmServerTransport> server_;
};

}  // namespace

std::unique_ptr<TransportUnderTest> MakeTransportUnderTest(const FakeRegion& region,
                                                           size_t pollers) {
  return std::make_unique<ShmUnderTest>(region, pollers);
}

}  // namespace kvd::test
