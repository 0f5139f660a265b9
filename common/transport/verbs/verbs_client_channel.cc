#include "common/transport/verbs/verbs_client_channel.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/transport/verbs/client_path.h"
#include "common/transport/verbs/rc_client_channel.h"

namespace kvd {

absl::StatusOr<std::unique_ptr<ClientChannel>> VerbsClientChannel::Connect(
    const VerbsTarget& target, const Hello& hello, int64_t deadline_ns) {
  absl::StatusOr<verbs::ClientPath> path = target.connect == VerbsConnectMode::kCm
                                               ? verbs::ConnectByCm(target, hello, deadline_ns)
                                               : verbs::ConnectByTcp(target, hello, deadline_ns);
  if (!path.ok()) return path.status();
  auto channel = std::make_unique<verbs::RcClientChannel>(*std::move(path));
  KVD_RETURN_IF_ERROR(channel->Open(hello, target.key, deadline_ns));
  return channel;
}

}  // namespace kvd
