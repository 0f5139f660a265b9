// The events of one Poll, filled in from several places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/transport/server_endpoint.h"
#include "common/transport/verbs/verbs_server_endpoint.h"

namespace kvd::verbs {

class VerbsServerEndpoint::Batch {
 public:
  explicit Batch(std::span<ServerEvent> events)
      : events_(events.first(std::min(events.size(), kBatchMax))) {}

  size_t room() const { return events_.size() - count_; }
  size_t count() const { return count_; }

  ServerEvent& Add(ServerEvent::Kind kind, ChannelId channel) {
    ServerEvent& event = events_[count_++];
    event = ServerEvent{};
    event.kind = kind;
    event.channel = channel;
    return event;
  }

 private:
  std::span<ServerEvent> events_;
  size_t count_ = 0;
};

}  // namespace kvd::verbs
