#include "tests/stress/rdma_rig.h"

#include <cstdlib>
#include <utility>

#include "tests/stress/victims.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {

RdmaRig::RdmaRig() : environment(FindRdmaEnvironment()) {
  if (environment.sides.empty()) KVD_SKIP("no RDMA device here; it runs in the guest");
  address = environment.server().address;
  flags = {"--memory=64m", "--listen=" + address + ":7711", "--insecure"};
  Start();
}

void RdmaRig::Start() { KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), flags)); }

std::unique_ptr<Client> RdmaRig::ConnectOverWire() const {
  ClientOptions options;
  options.rdma_device = environment.client().device;
  options.rdma_connect_by_tcp = by_tcp;
  return Connect(options);
}

std::unique_ptr<Client> RdmaRig::Connect(const ClientOptions& options) const {
  auto client = Client::Connect(target(), options);
  Eventually([&] {
    if (absl::IsUnavailable(client.status())) client = Client::Connect(target(), options);
    return !absl::IsUnavailable(client.status());
  });
  KVD_REQUIRE_OK(client);
  return *std::move(client);
}

}  // namespace kvd::test
