// READs that mean nothing, to see what the way to a server's memory takes by itself: the floor that
// the doctor compares GETs with.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/store.h"
#include "common/transport/client_channel.h"

namespace kvd::cli {

class PlainReads {
 public:
  // A session of its own at `target`, an RDMA server. Unimplemented: another kind of server.
  // Otherwise as VerbsClientChannel::Connect.
  static absl::StatusOr<std::unique_ptr<PlainReads>> Connect(std::string_view target,
                                                             const ConnectOptions& options);

  // READs the region's first `bytes`, a multiple of 8, and says how long that took. OutOfRange: it
  // has not so many.
  absl::StatusOr<std::chrono::nanoseconds> Read(uint64_t bytes);

 private:
  PlainReads(std::unique_ptr<ClientChannel> channel, std::chrono::nanoseconds deadline)
      : channel_(std::move(channel)), deadline_(deadline) {}

  std::unique_ptr<ClientChannel> channel_;
  const std::chrono::nanoseconds deadline_;
  TransferBuffer buffer_;
};

}  // namespace kvd::cli
