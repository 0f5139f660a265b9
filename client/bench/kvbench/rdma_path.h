// Which RDMA devices lie between this machine and a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/transport/verbs/device_facts.h"

namespace kvd::bench {

struct RdmaEnd {
  std::string device;
  uint32_t port = 1;
  uint32_t gid_index = 0;
  uint32_t mtu_bytes = 0;  // active
  std::string address;
};

struct RdmaPath {
  std::string host;               // the server's, as an address
  std::optional<RdmaEnd> here;    // unknown: no route, or no device has its address
  std::optional<RdmaEnd> server;  // where the server's address is one of this machine's own
};

// Of "rdma:HOST:PORT" or "HOST:PORT" (the first, where there are several); nothing for shared
// memory. `device`: what the user named; empty: the one that has the address which the route to the
// server begins at. Resolves names; sends nothing else.
std::optional<RdmaPath> RdmaPathTo(const std::string& target, const std::string& device);

// The end whose GID is that address: RoCE v2 if there are several. Of `device` alone unless that is
// empty.
std::optional<RdmaEnd> EndOf(const std::vector<verbs::DeviceFacts>& devices,
                             const std::string& address, const std::string& device);

}  // namespace kvd::bench
