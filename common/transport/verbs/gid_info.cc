#include "common/transport/verbs/gid_info.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>

namespace kvd::verbs {
namespace {

// The kernel takes a table of less than 64 KiB, and refuses to fill one that is too small.
constexpr size_t kGidsMax = UINT16_MAX / sizeof(ibv_gid_entry);

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
  constexpr uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_ipv4 = std::memcmp(gid.data(), kMappedPrefix, sizeof(kMappedPrefix)) == 0;
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, gid.data() + (is_ipv4 ? sizeof(kMappedPrefix) : 0), text,
            sizeof(text));
  return text;
}

bool IsLinkLocal(const GidBytes& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::vector<GidFacts> QueryGids(ibv_context* context, uint32_t port) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  std::vector<GidFacts> gids;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<size_t>(i)];
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
