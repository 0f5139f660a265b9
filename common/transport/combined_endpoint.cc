#include "common/transport/combined_endpoint.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"

namespace kvd {
namespace {

constexpr int kPartShift = 56;
constexpr uint64_t kOwnIdMask = (uint64_t{1} << kPartShift) - 1;

ChannelId Outer(size_t part, ChannelId own) {
  return ChannelId{uint64_t{part} << kPartShift | (static_cast<uint64_t>(own) & kOwnIdMask)};
}

ChannelId Own(ChannelId outer) { return ChannelId{static_cast<uint64_t>(outer) & kOwnIdMask}; }

}  // namespace

absl::StatusOr<std::unique_ptr<CombinedEndpoint>> CombinedEndpoint::Create(
    std::vector<ServerEndpoint*> parts) {
  KVD_CHECK(!parts.empty() && parts.size() <= 256);
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (epoll.get() < 0) return ErrnoStatus(errno, "epoll_create1");
  for (ServerEndpoint* part : parts) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, part->event_fd(), &event) != 0)
      return ErrnoStatus(errno, "epoll_ctl");
  }
  return std::unique_ptr<CombinedEndpoint>(
      new CombinedEndpoint(std::move(parts), std::move(epoll)));
}

ServerEndpoint& CombinedEndpoint::PartOf(ChannelId channel) const {
  return *parts_.at(static_cast<uint64_t>(channel) >> kPartShift);
}

size_t CombinedEndpoint::Poll(std::span<ServerEvent> events) {
  size_t count = 0;
  // Every part is polled, also with no room left for its events: Poll is what disarms its wake-up.
  for (size_t i = 0; i < parts_.size(); ++i) {
    const size_t part = (first_ + i) % parts_.size();
    const size_t taken = parts_[part]->Poll(events.subspan(count));
    for (ServerEvent& event : events.subspan(count, taken))
      event.channel = Outer(part, event.channel);
    count += taken;
  }
  first_ = (first_ + 1) % parts_.size();
  return count;
}

void CombinedEndpoint::Reply(ChannelId channel, const FrameParts& frame) {
  PartOf(channel).Reply(Own(channel), frame);
}

void CombinedEndpoint::Flush() {
  for (ServerEndpoint* part : parts_) part->Flush();
}

absl::Status CombinedEndpoint::Pull(ChannelId channel, const PullSource& source, std::byte* into,
                                    uint64_t pull_id) {
  return PartOf(channel).Pull(Own(channel), source, into, pull_id);
}

void CombinedEndpoint::Close(ChannelId channel, const absl::Status& reason) {
  PartOf(channel).Close(Own(channel), reason);
}

bool CombinedEndpoint::PrepareToSleep() {
  for (ServerEndpoint* part : parts_) {
    if (!part->PrepareToSleep()) return false;
  }
  return true;
}

}  // namespace kvd
