#include "client/internal/connector.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/admission/access_rules.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/verbs/verbs_client_channel.h"

namespace kvd {
namespace {

constexpr int64_t kBackOffMinNs = 1'000'000;
constexpr int64_t kBackOffMaxNs = 1'000'000'000;

// A server that cannot be reached says nothing of any key, and nothing of what it can do.
absl::Status AsConnectError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
      return status;
    default:
      return absl::UnavailableError(status.message());
  }
}

// Null: the client has none.
absl::StatusOr<std::shared_ptr<const AccessKey>> KeyOf(const ClientOptions& options) {
  if (options.key_file.empty()) return nullptr;
  absl::StatusOr<AccessKey> key = LoadAccessKey(options.key_file, options.key_name);
  if (key.ok()) return std::make_shared<const AccessKey>(*std::move(key));
  // Not the server's error: trying again does not help.
  if (absl::IsPermissionDenied(key.status())) return key.status();
  return absl::InvalidArgumentError(key.status().message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientChannel>> OpenChannel(const Target& target, const Hello& hello,
                                                           const ClientOptions& options,
                                                           int64_t deadline_ns) {
  KVD_ASSIGN_OR_RETURN(std::shared_ptr<const AccessKey> key, KeyOf(options));
  if (target.kind == Target::Kind::kShm)
    return ShmClientChannel::Connect(target.socket_path, hello, deadline_ns, std::move(key));
  VerbsTarget verbs;
  verbs.host = target.host;
  verbs.port = target.port;
  verbs.device = options.rdma_device;
  verbs.connect = options.rdma_connect_by_tcp ? VerbsConnectMode::kTcp : VerbsConnectMode::kCm;
  verbs.gid_index = options.rdma_gid_index;
  verbs.key = std::move(key);
  return VerbsClientChannel::Connect(verbs, hello, deadline_ns);
}

Connector::Connector(std::vector<Target> targets, const ClientOptions& options,
                     ChannelOpener opener, uint64_t client_id)
    : targets_(std::move(targets)),
      options_(options),
      opener_(std::move(opener)),
      client_id_(client_id),
      random_(client_id) {
  for (const Target& target : targets_) {
    if (!name_.empty()) name_ += ',';
    name_ += target.name;
  }
}

absl::StatusOr<Connector> Connector::Create(std::vector<Target> targets,
                                            const ClientOptions& options, ChannelOpener opener) {
  KVD_ASSIGN_OR_RETURN(const uint64_t id, RandomU64FromOs());
  return Connector(std::move(targets), options, std::move(opener), id == 0 ? 1 : id);
}

absl::StatusOr<std::unique_ptr<Session>> Connector::Connect(const Clock& clock,
                                                            int64_t deadline_ns) {
  return ConnectBefore(targets_.size(), clock, deadline_ns);
}

absl::StatusOr<std::unique_ptr<Session>> Connector::ConnectBefore(size_t index, const Clock& clock,
                                                                  int64_t deadline_ns) {
  absl::Status error;
  std::string reasons;
  for (size_t i = 0; i < index; ++i) {
    auto session = ConnectTo(i, clock, deadline_ns);
    if (session.ok()) return session;
    const bool away = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
    if (error.ok() || (away && !absl::IsUnavailable(session.status()))) error = session.status();
    absl::StrAppend(&reasons, " (", i + 1, ") ", targets_[i].name, ": ",
                    session.status().message());
  }
  if (index == 1) return error;
  return absl::Status(error.code(),
                      absl::StrCat("none of ", index, " targets can be reached:", reasons));
}

absl::StatusOr<std::unique_ptr<Session>> Connector::ConnectTo(size_t index, const Clock& clock,
                                                              int64_t deadline_ns) {
  absl::StatusOr<std::unique_ptr<ClientChannel>> channel =
      opener_(targets_[index], MakeHello(), options_, deadline_ns);
  if (!channel.ok()) return AsConnectError(channel.status());
  return std::make_unique<Session>(*std::move(channel), index, options_, &clock);
}

Hello Connector::MakeHello() const {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.feature_bits = kFeatureCounts | (options_.for_administration ? kFeatureAdministration : 0);
  hello.client_id = client_id_;
  hello.credits_wanted = options_.credits;
  hello.pid = static_cast<uint32_t>(getpid());
  options_.name.copy(hello.name, sizeof(hello.name) - 1);
  return hello;
}

absl::StatusOr<std::unique_ptr<Session>> Connector::Reconnect(const Clock& clock,
                                                              int64_t deadline_ns) {
  if (!last_error_.ok() && RealClock::Get().NowMonotonicNs() < next_attempt_ns_) return last_error_;
  auto session = Connect(clock, deadline_ns);
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
