// More clients than a server's queues have room for.
#include <memory>
#include <vector>

#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_steps.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

constexpr size_t kClientsMax = 16;  // more than any of these servers has room for

void CheckAnswers(ClientChannel& client) {
  KVD_REQUIRE_OK(client.Send(Frame("still served")));
  CHECK(Receive(client).value() == "still served");
}

}  // namespace

TEST_CASE(
    "Verbs: who finds no room in a server's queues is told so, and gets in once somebody has "
    "gone") {
  RequireDevices();
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options = MakeVerbsServerOptions(region, GENERATE(1, 2));
  std::string lacking;
  SECTION("completion queue") {
    options.cq_entries = 200;
    lacking = "completion queue entries";
  }
  SECTION("shared receives") {
    options.shared_receives = 60;
    lacking = "shared receives";
  }
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  std::vector<std::unique_ptr<EchoServer>> servers;
  for (size_t i = 0; i < options.pollers; ++i) {
    servers.push_back(
        std::make_unique<EchoServer>((*transport)->endpoint(i), EchoServer::Mode::kSleepy));
  }
  const auto connect = [&] {
    return VerbsClientChannel::Connect(MakeVerbsTarget(**transport), MakeHello(), DeadlineNs());
  };
  std::vector<std::unique_ptr<ClientChannel>> clients;
  absl::Status refused;
  while (refused.ok() && clients.size() < kClientsMax) {
    auto client = connect();
    refused = client.status();
    if (client.ok()) clients.push_back(*std::move(client));
  }
  INFO(refused);
  KVD_REQUIRE_CODE(refused, kUnavailable);
  CHECK_THAT(MessageOf(refused), Catch::Contains("server full") && Catch::Contains(lacking));
  CHECK(clients.size() >= 2 * options.pollers);  // each poller's queues are used up
  for (const auto& client : clients) CheckAnswers(*client);
  clients.pop_back();
  // Its end is the server's to take note of.
  auto next = connect();
  while (!next.ok()) next = connect();
  CheckAnswers(**next);
}

}  // namespace kvd::test
