#include "common/transport/verbs/gids.h"

#include <netinet/in.h>

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/transport/verbs/gid_table.h"

namespace kvd::verbs {
namespace {

std::optional<ibv_gid> GidOf(const sockaddr* address) {
  ibv_gid gid{};
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return gid;
  }
  if (address->sa_family == AF_INET6) {
    std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
    return gid;
  }
  return std::nullopt;
}

int Score(const ibv_gid_entry& entry, const std::optional<ibv_gid>& local) {
  int score = 0;
  if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) score += 4;
  if (local.has_value() && std::memcmp(entry.gid.raw, local->raw, 16) == 0) score += 8;
  if (HoldsIpv4(entry.gid.raw)) score += 2;
  if (!IsLinkLocalGid(entry.gid.raw)) score += 1;
  return score;
}

}  // namespace

std::vector<SocketAddress> AddressesOf(const RdmaContext& context, int family) {
  std::vector<SocketAddress> routable;
  std::vector<SocketAddress> link_local;
  for (const ibv_gid_entry& entry : ReadGidTable(context.get())) {
    if (entry.gid_type == IBV_GID_TYPE_IB) continue;
    SocketAddress address;
    if (family == AF_INET && HoldsIpv4(entry.gid.raw)) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
      v4->sin_family = AF_INET;
      std::memcpy(&v4->sin_addr, entry.gid.raw + 12, 4);
      address.length = sizeof(*v4);
      routable.push_back(address);
    } else if (family == AF_INET6 && !HoldsIpv4(entry.gid.raw)) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
      v6->sin6_family = AF_INET6;
      std::memcpy(&v6->sin6_addr, entry.gid.raw, 16);
      address.length = sizeof(*v6);
      if (!IsLinkLocalGid(entry.gid.raw)) {
        routable.push_back(address);
      } else {
        v6->sin6_scope_id = entry.ndev_ifindex;
        link_local.push_back(address);
      }
    }
  }
  routable.insert(routable.end(), link_local.begin(), link_local.end());
  return routable;
}

absl::StatusOr<LocalGid> ChooseGid(const RdmaContext& context, uint8_t port, int gid_index,
                                   const sockaddr* local) {
  const std::optional<ibv_gid> wanted = GidOf(local);
  const ibv_gid_entry* best = nullptr;
  const std::vector<ibv_gid_entry> entries = ReadGidTable(context.get());
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num != port) continue;
    if (gid_index >= 0) {
      if (entry.gid_index == static_cast<uint32_t>(gid_index)) best = &entry;
      continue;
    }
    if (best == nullptr || Score(entry, wanted) > Score(*best, wanted)) best = &entry;
  }
  if (best == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("port ", port, " of ", context.name(), " has no GID",
                     gid_index >= 0 ? absl::StrCat(" with index ", gid_index) : ""));
  }
  return LocalGid{best->gid, static_cast<uint8_t>(best->gid_index)};
}

}  // namespace kvd::verbs
