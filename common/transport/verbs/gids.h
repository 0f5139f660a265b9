// The addresses of a device's ports: for choosing a source address, and a GID where rdma_cm does
// not choose it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

// The IP addresses of all ports' RoCE GIDs of this family, without a port number; link-local ones
// last, with their zone.
std::vector<SocketAddress> AddressesOf(const RdmaContext& context, int family);

// One GID of a port as the peer must know it.
struct LocalGid {
  ibv_gid gid{};
  uint8_t index = 0;
};

// The GID with that index; with -1 the best there is for a connection from `local` (may be null):
// the RoCE v2 one of that address first, then any RoCE v2, then any other. NotFound: there is none.
absl::StatusOr<LocalGid> ChooseGid(const RdmaContext& context, uint8_t port, int gid_index,
                                   const sockaddr* local);

}  // namespace kvd::verbs
