#include "tests/e2e/client/kvd_under_test.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/e2e/client/broken_sessions.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {

bool KvdUnderTest::IsOverRdma() {
  const char* const over = getenv("KVD_OVER");
  return over != nullptr && std::strcmp(over, "rdma") == 0;
}

KvdUnderTest::KvdUnderTest(std::vector<std::string> flags) : over_rdma_(IsOverRdma()) {
  if (over_rdma_) {
    const RdmaEnvironment environment = FindRdmaEnvironment();
    if (environment.sides.empty()) KVD_SKIP("no RDMA device");
    const std::string listen = environment.server().address + ":7711";
    target_ = "rdma:" + listen;
    flags.insert(flags.end(), {"--listen=" + listen, "--insecure"});
  } else {
    target_ = process_.target();
  }
  KVD_REQUIRE_OK(process_.Start(getenv("KVD"), flags));
}

std::unique_ptr<Client> KvdUnderTest::Connect(const ClientOptions& options) const {
  // kvd serves shared memory, by which it is known to have started, a moment before RDMA.
  ClientOptions patient = options;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    auto client = Client::Connect(target_, patient);
    if (client.ok()) return *std::move(client);
    if (std::chrono::steady_clock::now() > until) KVD_REQUIRE_OK(client);
  }
}

int KvdUnderTest::BreakSessions() const { return over_rdma_ ? 0 : kvd::test::BreakSessions(); }

}  // namespace kvd::test
