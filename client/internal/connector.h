// Makes the sessions of a client object: the first one, and new ones after the server went away.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/session.h"
#include "client/internal/target.h"
#include "client/kv_client.h"
#include "common/base/random.h"

namespace kvd {

class Connector {
 public:
  // Unavailable if the system gives no random numbers.
  static absl::StatusOr<Connector> Create(Target target, const ClientOptions& options);

  const Target& target() const { return target_; }

  // One attempt. Blocks up to the deadline; errors as ShmClientChannel::Connect.
  absl::StatusOr<std::unique_ptr<Session>> Connect(int64_t deadline_ns);

  // An attempt after a session broke; within the back-off of an earlier failed attempt it fails at once, with that
  // attempt's error. The back-off doubles from 1 ms to 1 s, with jitter so that clients do not return in step.
  absl::StatusOr<std::unique_ptr<Session>> Reconnect(int64_t deadline_ns);

 private:
  Connector(Target target, const ClientOptions& options, uint64_t client_id)
      : target_(std::move(target)), options_(options), client_id_(client_id), random_(client_id) {}

  absl::StatusOr<std::unique_ptr<ClientChannel>> OpenChannel(const Hello& hello, int64_t deadline_ns);

  Target target_;
  ClientOptions options_;
  uint64_t client_id_;
  Random random_;
  int64_t next_attempt_ns_ = 0;
  int64_t back_off_ns_ = 0;
  absl::Status last_error_;
};

}  // namespace kvd
