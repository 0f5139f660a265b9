#include "client/internal/connector.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/verbs/verbs_client_channel.h"

namespace kvd {
namespace {

constexpr int64_t kBackOffMinNs = 1'000'000;
constexpr int64_t kBackOffMaxNs = 1'000'000'000;

}  // namespace

absl::StatusOr<Connector> Connector::Create(Target target, const ClientOptions& options) {
  KVD_ASSIGN_OR_RETURN(const uint64_t id, RandomU64FromOs());
  return Connector(std::move(target), options, id == 0 ? 1 : id);
}

absl::StatusOr<std::unique_ptr<Session>> Connector::Connect(int64_t deadline_ns) {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.client_id = client_id_;
  hello.credits_wanted = options_.credits;
  hello.pid = static_cast<uint32_t>(getpid());
  options_.name.copy(hello.name, sizeof(hello.name) - 1);
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<ClientChannel> channel, OpenChannel(hello, deadline_ns));
  return std::make_unique<Session>(std::move(channel), options_);
}

absl::StatusOr<std::unique_ptr<ClientChannel>> Connector::OpenChannel(const Hello& hello, int64_t deadline_ns) {
  if (target_.kind == Target::Kind::kShm) return ShmClientChannel::Connect(target_.socket_path, hello, deadline_ns);
  VerbsTarget target;
  target.host = target_.host;
  target.port = target_.port;
  target.device = options_.rdma_device;
  target.connect = options_.rdma_connect_by_tcp ? VerbsConnectMode::kTcp : VerbsConnectMode::kCm;
  target.gid_index = options_.rdma_gid_index;
  return VerbsClientChannel::Connect(target, hello, deadline_ns);
}

absl::StatusOr<std::unique_ptr<Session>> Connector::Reconnect(int64_t deadline_ns) {
  if (!last_error_.ok() && RealClock::Get().NowMonotonicNs() < next_attempt_ns_) return last_error_;
  auto session = Connect(deadline_ns);
  if (session.ok()) {
    last_error_ = absl::OkStatus();
    back_off_ns_ = 0;
    return session;
  }
  last_error_ = session.status();
  back_off_ns_ = std::clamp(back_off_ns_ * 2, kBackOffMinNs, kBackOffMaxNs);
  const int64_t half = back_off_ns_ / 2;
  next_attempt_ns_ = RealClock::Get().NowMonotonicNs() + half +
                     static_cast<int64_t>(random_.Uniform(static_cast<uint64_t>(half) + 1));
  return session;
}

}  // namespace kvd
