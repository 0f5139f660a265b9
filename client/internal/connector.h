// Makes the sessions of a client object: the first one, and new ones after the server went away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/session.h"
#include "client/internal/target.h"
#include "client/kv_client.h"
#include "common/base/random.h"
#include "common/layout/hello.h"
#include "common/transport/client_channel.h"

namespace kvd {

// Makes one attempt to be admitted by the kvd that the target names. Blocks up to the deadline.
// Errors as ShmClientChannel::Connect and VerbsClientChannel::Connect.
using ChannelOpener = std::function<absl::StatusOr<std::unique_ptr<ClientChannel>>(
    const Target& target, const Hello& hello, const ClientOptions& options, int64_t deadline_ns)>;

// Over shared memory or RDMA, as the target says.
absl::StatusOr<std::unique_ptr<ClientChannel>> OpenChannel(const Target& target, const Hello& hello,
                                                           const ClientOptions& options,
                                                           int64_t deadline_ns);

class Connector {
 public:
  // `targets`: at least one; ways to the same kvd in order of preference. Unavailable if the system
  // gives no random numbers.
  static absl::StatusOr<Connector> Create(std::vector<Target> targets, const ClientOptions& options,
                                          ChannelOpener opener);

  // All targets, for people.
  const std::string& name() const { return name_; }

  // `clock`, the server's as this client knows it, outlives the session. One attempt for each
  // target until one works. Blocks up to the deadline; errors as ChannelOpener's, with the
  // code of the first target that failed in another way than by being away, else of the first; of
  // several the message names each with its reason.
  absl::StatusOr<std::unique_ptr<Session>> Connect(const Clock& clock, int64_t deadline_ns);

  // The same with the targets before `index` only.
  absl::StatusOr<std::unique_ptr<Session>> ConnectBefore(size_t index, const Clock& clock,
                                                         int64_t deadline_ns);

  // As Connect, after a session broke; within the back-off of an earlier failed attempt it fails at
  // once, with that attempt's error. The back-off doubles from 1 ms to 1 s, with jitter so that
  // clients do not return in step.
  absl::StatusOr<std::unique_ptr<Session>> Reconnect(const Clock& clock, int64_t deadline_ns);

  // Why the last attempt failed; Ok if it did not. And when the next one may be made.
  const absl::Status& last_error() const { return last_error_; }
  int64_t next_attempt_ns() const { return last_error_.ok() ? 0 : next_attempt_ns_; }

 private:
  Connector(std::vector<Target> targets, const ClientOptions& options, ChannelOpener opener,
            uint64_t client_id);

  absl::StatusOr<std::unique_ptr<Session>> ConnectTo(size_t index, const Clock& clock,
                                                     int64_t deadline_ns);
  Hello MakeHello() const;

  std::vector<Target> targets_;
  std::string name_;
  ClientOptions options_;
  ChannelOpener opener_;
  uint64_t client_id_;
  Random random_;
  int64_t next_attempt_ns_ = 0;
  int64_t back_off_ns_ = 0;
  absl::Status last_error_;
};

}  // namespace kvd
