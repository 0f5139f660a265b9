// A device's table of GIDs, as the kernel keeps it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace kvd::verbs {

// The GIDs that are set on all ports of an open device; none if they cannot be read. Asks the
// kernel; does not wait for the network.
std::vector<ibv_gid_entry> ReadGidTable(ibv_context* context);

// Of a GID's 16 bytes: holds an IPv4 address, ::ffff:10.77.0.1.
bool HoldsIpv4(const uint8_t* gid);

// fe80::/10, which for InfiniBand is the default subnet and no restriction.
bool IsLinkLocalGid(const uint8_t* gid);

}  // namespace kvd::verbs
