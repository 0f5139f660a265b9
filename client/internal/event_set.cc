#include "client/internal/event_set.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/errno_status.h"

namespace kvd {

absl::StatusOr<std::unique_ptr<EventSet>> EventSet::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("epoll_create1");
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return ErrnoStatus("timerfd_create");
  std::unique_ptr<EventSet> set(new EventSet(std::move(epoll), std::move(timer)));
  const int timer_fd = set->timer_.get();
  if (!set->Watch(std::span(&timer_fd, 1))) return ErrnoStatus("epoll_ctl");
  return set;
}

bool EventSet::Watch(std::span<const int> fds) {
  for (const int fd : fds) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) return false;
  }
  return true;
}

void EventSet::SetTimer(int64_t until_ns) {
  itimerspec timer{};
  if (until_ns != INT64_MAX) {
    const int64_t at_ns = std::max<int64_t>(until_ns, 1);  // 0 would disarm it
    timer.it_value = {at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &timer, nullptr);  // also takes what it has to tell
}

}  // namespace kvd
