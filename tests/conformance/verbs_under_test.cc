#include "tests/conformance/verbs_under_test.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/transport_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

class VerbsUnderTest : public TransportUnderTest {
 public:
  VerbsUnderTest(const FakeRegion& region, size_t pollers) {
    auto server = VerbsServerTransport::Create(MakeVerbsServerOptions(region, pollers));
    KVD_REQUIRE_OK(server);
    server_ = *std::move(server);
  }

  ServerTransport& server() override { return *server_; }

  absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(const Hello& hello,
                                                         int64_t deadline_ns) override {
    return VerbsClientChannel::Connect(MakeVerbsTarget(*server_), hello, deadline_ns);
  }

  bool slow() const override { return true; }
  bool connect_needs_polling() const override { return true; }
  bool serves_in_order_of_arrival() const override { return true; }
  bool bad_pull_ends_session() const override { return true; }

 private:
  std::unique_ptr<VerbsServerTransport> server_;
};

std::string ServerHost(const std::string& host) {
  return host.empty() ? FindRdmaEnvironment().server().address : host;
}

}  // namespace

VerbsConnectMode VerbsConnectModeUnderTest() {
  const char* mode = std::getenv("KVD_VERBS_CONNECT");
  return mode != nullptr && std::string_view(mode) == "tcp" ? VerbsConnectMode::kTcp
                                                            : VerbsConnectMode::kCm;
}

VerbsServerOptions MakeVerbsServerOptions(const FakeRegion& region, size_t pollers,
                                          const std::string& host) {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (environment.sides.empty()) KVD_SKIP("no RDMA devices: KVD_RDMA_DEVICES is not set");
  VerbsServerOptions options;
  options.listen = absl::StrCat("[", ServerHost(host), "]:0");
  options.device = environment.server().device;
  options.region_base = region.whole().data();
  options.region_bytes = region.whole().size();
  options.pollers = pollers;
  options.connect = VerbsConnectModeUnderTest();
  return options;
}

VerbsTarget MakeVerbsTarget(const VerbsServerTransport& server, const std::string& host) {
  VerbsTarget target;
  target.host = ServerHost(host);
  target.port = server.port();
  target.connect = VerbsConnectModeUnderTest();
  target.device = FindRdmaEnvironment().client().device;
  return target;
}

std::unique_ptr<TransportUnderTest> MakeTransportUnderTest(const FakeRegion& region,
                                                           size_t pollers) {
  return std::make_unique<VerbsUnderTest>(region, pollers);
}

}  // namespace kvd::test
