// The verbs transport under test, with what cases need that are for it alone.
#pragma once

#include <memory>
#include <string>

#include "common/transport/verbs/verbs_server_transport.h"
#include "common/transport/verbs/verbs_target.h"
#include "tests/conformance/fake_region.h"
#include "tests/softroce/rdma_environment.h"

namespace kvd::test {

// A server of the region by the environment's server side, at any port of `host` (empty: its IPv4
// address), and its clients' target. Skips the case where there are no devices.
VerbsServerOptions MakeVerbsServerOptions(const FakeRegion& region, size_t pollers,
                                          const std::string& host = "");
VerbsTarget MakeVerbsTarget(const VerbsServerTransport& server, const std::string& host = "");

// How clients and servers find each other: by rdma_cm, or with KVD_VERBS_CONNECT=tcp without it.
VerbsConnectMode VerbsConnectModeUnderTest();

}  // namespace kvd::test
