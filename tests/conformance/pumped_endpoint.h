// An endpoint that the rig can poll while a client connects, for transports whose handshake needs
// the poller. What it polls is copied and kept for the case's own Poll, so a case that drives the
// endpoint from its own thread sees the same events in the same order. Once another thread polls,
// that one does the work.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/transport/server_endpoint.h"

namespace kvd::test {

class PumpedEndpoint final : public ServerEndpoint {
 public:
  explicit PumpedEndpoint(ServerEndpoint& inner)
      : inner_(inner), home_(std::this_thread::get_id()) {}

  // On the thread that made this object.
  void Pump() {
    const std::lock_guard lock(mutex_);
    if (served_elsewhere_) return;
    ServerEvent events[32];
    const size_t count = inner_.Poll(events);
    for (const ServerEvent& event : std::span(events).first(count)) kept_.push_back(Keep(event));
    inner_.Flush();
  }

  size_t Poll(std::span<ServerEvent> events) override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() != home_) served_elsewhere_ = true;
    shown_.clear();
    if (kept_.empty()) return inner_.Poll(events);
    while (!kept_.empty() && shown_.size() < events.size()) {
      shown_.push_back(std::move(kept_.front()));
      kept_.pop_front();
      events[shown_.size() - 1] = shown_.back()->event;
    }
    return shown_.size();
  }

  void Reply(ChannelId channel, const FrameParts& frame) override { inner_.Reply(channel, frame); }
  void Flush() override { inner_.Flush(); }
  absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                    uint64_t pull_id) override {
    return inner_.Pull(channel, source, into, pull_id);
  }
  void Close(ChannelId channel, const absl::Status& reason) override {
    inner_.Close(channel, reason);
  }
  bool PrepareToSleep() override {
    const std::lock_guard lock(mutex_);
    return kept_.empty() && inner_.PrepareToSleep();
  }
  int event_fd() const override { return inner_.event_fd(); }

 private:
  struct Kept {
    ServerEvent event;
    std::vector<std::byte> frame;
    Hello hello{};
    PeerIdentity peer;
    absl::Status error;
  };

  static std::unique_ptr<Kept> Keep(const ServerEvent& event) {
    auto kept = std::make_unique<Kept>();
    kept->event = event;
    kept->frame.assign(event.frame.begin(), event.frame.end());
    kept->event.frame = kept->frame;
    if (event.hello != nullptr) kept->event.hello = &(kept->hello = *event.hello);
    if (event.peer != nullptr) kept->event.peer = &(kept->peer = *event.peer);
    if (event.error != nullptr) kept->event.error = &(kept->error = *event.error);
    return kept;
  }

  ServerEndpoint& inner_;
  const std::thread::id home_;
  std::mutex mutex_;
  bool served_elsewhere_ = false;
  std::deque<std::unique_ptr<Kept>> kept_;
  std::vector<std::unique_ptr<Kept>> shown_;  // what the last Poll's events point to
};

}  // namespace kvd::test
