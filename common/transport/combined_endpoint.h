// Several endpoints as one, so that a poller serves all transports without knowing that there are
// several.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/transport/server_endpoint.h"

namespace kvd {

// A channel's id is the one its own endpoint gave it, with the endpoint's number in the top byte.
// Endpoints are polled in turn, each Poll beginning with another one, so that a busy transport
// cannot starve an idle one.
class CombinedEndpoint final : public ServerEndpoint {
 public:
  // `parts`: 1 to 256 endpoints, which outlive this one. ResourceExhausted: no descriptor for the
  // common event_fd.
  static absl::StatusOr<std::unique_ptr<CombinedEndpoint>> Create(
      std::vector<ServerEndpoint*> parts);

  size_t Poll(std::span<ServerEvent> events) override;
  void Reply(ChannelId channel, const FrameParts& frame) override;
  void Flush() override;
  absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                    uint64_t pull_id) override;
  void Close(ChannelId channel, const absl::Status& reason) override;
  bool PrepareToSleep() override;
  int event_fd() const override { return epoll_.get(); }

 private:
  CombinedEndpoint(std::vector<ServerEndpoint*> parts, UniqueFd epoll)
      : parts_(std::move(parts)), epoll_(std::move(epoll)) {}

  ServerEndpoint& PartOf(ChannelId channel) const;

  const std::vector<ServerEndpoint*> parts_;
  const UniqueFd epoll_;  // readable when one of the parts' descriptors is
  size_t first_ = 0;      // of the next Poll
};

}  // namespace kvd
