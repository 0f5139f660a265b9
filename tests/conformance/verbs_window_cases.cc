// What a client reads by: a memory window of its own, good on its connection only, and void from
// the moment in which it is sent away; or, where that is asked for, the region's one key.
#include <memory>
#include <string>
#include <thread>

#include "tests/conformance/raw_verbs_client.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

// A server with that policy, and raw clients of it, all driven by the test's own thread.
class WindowRig {
 public:
  explicit WindowRig(WindowPolicy windows) {
    VerbsServerOptions options = MakeVerbsServerOptions(region_, 1);
    options.windows = windows;
    auto transport = VerbsServerTransport::Create(options);
    KVD_REQUIRE_OK(transport);
    transport_ = *std::move(transport);
    KVD_REQUIRE_OK(transport_->Start(admission_));
    pump_ = std::make_unique<Pump>(transport_->endpoint(0));
  }

  struct Client {
    std::unique_ptr<RawVerbsClient> raw;
    Welcome welcome{};
    ChannelId channel{};

    ibv_wc_status Read(uint32_t key) {
      return raw->Access(IBV_WR_RDMA_READ, welcome.region_address, key, 64);
    }
  };

  Client Admitted() {
    const VerbsTarget target = MakeVerbsTarget(*transport_);
    auto path = target.connect == VerbsConnectMode::kCm
                    ? verbs::ConnectByCm(target, MakeHello(), DeadlineNs())
                    : verbs::ConnectByTcp(target, MakeHello(), DeadlineNs());
    KVD_REQUIRE_OK(path);
    Client client;
    client.raw = std::make_unique<RawVerbsClient>(*std::move(path));
    std::thread greeting([&] { client.welcome = client.raw->BeAdmitted(MakeHello(), 1); });
    client.channel = pump_->Next(ServerEvent::Kind::kOpened).channel;
    greeting.join();
    return client;
  }

  VerbsServerTransport& transport() { return *transport_; }

  std::string Fact(const std::string& name) const {
    const StatisticList facts = transport_->Facts();
    const Statistic* fact = facts.Find(name);
    return fact == nullptr ? "" : fact->ValueText();
  }

 private:
  FakeRegion region_;
  FakeAdmission admission_{region_, 16, 4608};
  std::unique_ptr<VerbsServerTransport> transport_;
  std::unique_ptr<Pump> pump_;
};

}  // namespace

TEST_CASE("Verbs: a session's key reads on its own connection, and on no other") {
  WindowRig rig(WindowPolicy::kRequire);
  CHECK(rig.Fact("rdma_windows") == "1");
  WindowRig::Client one = rig.Admitted();
  WindowRig::Client two = rig.Admitted();
  REQUIRE(one.welcome.region_key != two.welcome.region_key);
  CHECK(one.Read(one.welcome.region_key) == IBV_WC_SUCCESS);
  CHECK(two.Read(two.welcome.region_key) == IBV_WC_SUCCESS);
  CHECK(one.Read(two.welcome.region_key) == IBV_WC_REM_ACCESS_ERR);
  // Which ended the one that tried, and nobody else.
  CHECK(two.Read(two.welcome.region_key) == IBV_WC_SUCCESS);
}

TEST_CASE(
    "Verbs: who is sent away reads nothing from then on, though its connection still stands") {
  WindowRig rig(WindowPolicy::kRequire);
  WindowRig::Client other = rig.Admitted();
  WindowRig::Client client = rig.Admitted();
  CHECK(client.Read(client.welcome.region_key) == IBV_WC_SUCCESS);
  // It has no receive posted for the notice, so the server waits for it.
  rig.transport().endpoint(0).Close(client.channel, absl::PermissionDeniedError("sent away"));
  CHECK(client.Read(client.welcome.region_key) == IBV_WC_REM_ACCESS_ERR);
  CHECK(other.Read(other.welcome.region_key) == IBV_WC_SUCCESS);
}

TEST_CASE("Verbs: without windows all sessions read by the region's key, and that is said") {
  WindowRig rig(WindowPolicy::kOff);
  CHECK(rig.Fact("rdma_windows") == "0");
  WindowRig::Client one = rig.Admitted();
  WindowRig::Client two = rig.Admitted();
  CHECK(one.welcome.region_key == two.welcome.region_key);
  CHECK(one.Read(two.welcome.region_key) == IBV_WC_SUCCESS);
}

}  // namespace kvd::test
