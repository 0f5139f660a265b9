// What is said where no target can be reached.
#include "client/internal/connector.h"

#include <memory>
#include <string>

#include "client/internal/target.h"
#include "common/base/clock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

absl::Status ConnectTo(std::string_view targets, const ChannelOpener& opener) {
  absl::StatusOr<Connector> connector =
      Connector::Create(ParseTargets(targets).value(), ClientOptions(), opener);
  KVD_REQUIRE_OK(connector);
  return connector->Connect(RealClock::Get(), 0).status();
}

TEST_CASE("Connector: each of several targets is named with its reason") {
  const ChannelOpener opener = [](const Target& target, const Hello&, const ClientOptions&,
                                  int64_t) -> absl::StatusOr<std::unique_ptr<ClientChannel>> {
    if (target.kind == Target::Kind::kShm) return absl::UnavailableError("no socket; start kvd");
    return absl::PermissionDeniedError("not admitted");
  };
  absl::Status status = ConnectTo("shm:/a,h:1", opener);
  KVD_REQUIRE_CODE(status, kPermissionDenied);  // which waiting does not mend
  CHECK(test::MessageOf(status) ==
        "none of 2 targets can be reached: (1) shm:/a: no socket; start kvd (2) rdma:h:1: not "
        "admitted");
  status = ConnectTo("shm:/a", opener);
  KVD_REQUIRE_CODE(status, kUnavailable);
  CHECK(test::MessageOf(status) == "no socket; start kvd");
}

}  // namespace
}  // namespace kvd
