#include "common/transport/verbs/gid_info.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>

#include "common/transport/verbs/gid_table.h"

namespace kvd::verbs {
namespace {

GidType TypeOf(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return GidType::kInfiniBand;
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
  }
  return GidType::kUnknown;
}

std::string NameOfInterface(uint32_t index) {
  char name[IF_NAMESIZE] = {};
  return index != 0 && if_indextoname(index, name) != nullptr ? name : "";
}

}  // namespace

std::string GidText(const GidBytes& gid) {
  const bool is_ipv4 = HoldsIpv4(gid.data());
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, gid.data() + (is_ipv4 ? 12 : 0), text, sizeof(text));
  return text;
}

bool IsLinkLocal(const GidBytes& gid) { return IsLinkLocalGid(gid.data()); }

std::vector<GidFacts> QueryGids(ibv_context* context, uint32_t port) {
  std::vector<GidFacts> gids;
  for (const ibv_gid_entry& entry : ReadGidTable(context)) {
    if (entry.port_num != port) continue;
    GidBytes bytes;
    std::copy(std::begin(entry.gid.raw), std::end(entry.gid.raw), bytes.begin());
    gids.push_back({entry.gid_index, TypeOf(entry.gid_type), GidText(bytes),
                    NameOfInterface(entry.ndev_ifindex), IsLinkLocal(bytes)});
  }
  std::sort(gids.begin(), gids.end(),
            [](const GidFacts& a, const GidFacts& b) { return a.index < b.index; });
  return gids;
}

}  // namespace kvd::verbs
