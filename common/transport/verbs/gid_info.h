// The GIDs of a port, told apart by the type that the device reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/transport/verbs/device_facts.h"

struct ibv_context;

namespace kvd::verbs {

using GidBytes = std::array<uint8_t, 16>;

// "10.77.0.1" for ::ffff:10.77.0.1, otherwise IPv6 as RFC 5952 writes it.
std::string GidText(const GidBytes& gid);

// fe80::/10, which for InfiniBand is the default subnet and no restriction.
bool IsLinkLocal(const GidBytes& gid);

// The GIDs that are set on `port` of an open device, by rising index; empty if they cannot be read.
// `context` stays the caller's. Asks the kernel; does not wait for the network.
std::vector<GidFacts> QueryGids(ibv_context* context, uint32_t port);

}  // namespace kvd::verbs
