#include "common/transport/verbs/parked_ids.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "common/base/unique_fd.h"

namespace kvd::verbs {
namespace {

// A datagram socket that is bound and connected sends nothing, and fails where there is no route.
bool HasRoute(const sockaddr* from, const sockaddr* to) {
  if (to->sa_family != AF_INET && to->sa_family != AF_INET6) return true;  // InfiniBand's own
  const UniqueFd probe(socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return true;  // no more is known; the port is active
  const socklen_t length = to->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  sockaddr_storage any_port{};
  std::memcpy(&any_port, from, length);
  // At the same place for IPv6.
  reinterpret_cast<sockaddr_in*>(&any_port)->sin_port = 0;
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&any_port), length) == 0 &&
         connect(probe.get(), to, length) == 0;
}

}  // namespace

bool DeviceIsThere(const ibv_device& device) {
  return access((std::string("/sys/class/infiniband_verbs/") + device.dev_name).c_str(), F_OK) == 0;
}

bool PathCarries(rdma_cm_id* id) {
  if (id->verbs == nullptr || rdma_get_peer_addr(id)->sa_family == AF_UNSPEC) return true;
  ibv_port_attr port{};
  if (!DeviceIsThere(*id->verbs->device) || ibv_query_port(id->verbs, id->port_num, &port) != 0)
    return true;
  return port.state == IBV_PORT_ACTIVE && HasRoute(rdma_get_local_addr(id), rdma_get_peer_addr(id));
}

ParkedIds& ParkedIds::OfProcess() {
  static ParkedIds* const ids =
      new ParkedIds;  // for ever: at its end the process says goodbye anyway
  return *ids;
}

void ParkedIds::Park(std::shared_ptr<CmEventChannel> channel, rdma_cm_id* id) {
  const std::lock_guard lock(mutex_);
  parked_.push_back(Parked{std::move(channel), id});
  count_.store(parked_.size(), std::memory_order_relaxed);
}

void ParkedIds::Sweep() {
  if (count() == 0) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(parked_, [](const Parked& parked) {
    if (!PathCarries(parked.id)) return false;
    rdma_destroy_id(parked.id);
    return true;
  });
  count_.store(parked_.size(), std::memory_order_relaxed);
}

}  // namespace kvd::verbs
