#include "common/transport/verbs/gids.h"

#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace kvd::verbs {
namespace {

constexpr size_t kGidsMax = 256;

std::vector<ibv_gid_entry> GidsOf(const RdmaContext& context) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t got = ibv_query_gid_table(context.get(), entries.data(), entries.size(), 0);
  entries.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return entries;
}

bool IsMappedV4(const ibv_gid& gid) {
  static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

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
  if (IsMappedV4(entry.gid)) score += 2;
  if (!IsLinkLocal(entry.gid)) score += 1;
  return score;
}

}  // namespace

std::vector<SocketAddress> AddressesOf(const RdmaContext& context, int family) {
  std::vector<SocketAddress> routable;
  std::vector<SocketAddress> link_local;
  for (const ibv_gid_entry& entry : GidsOf(context)) {
    if (entry.gid_type == IBV_GID_TYPE_IB) continue;
    SocketAddress address;
    if (family == AF_INET && IsMappedV4(entry.gid)) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
      v4->sin_family = AF_INET;
      std::memcpy(&v4->sin_addr, entry.gid.raw + 12, 4);
      address.length = sizeof(*v4);
      routable.push_back(address);
    } else if (family == AF_INET6 && !IsMappedV4(entry.gid)) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
      v6->sin6_family = AF_INET6;
      std::memcpy(&v6->sin6_addr, entry.gid.raw, 16);
      address.length = sizeof(*v6);
      if (!IsLinkLocal(entry.gid)) {
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
  const std::vector<ibv_gid_entry> entries = GidsOf(context);
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
