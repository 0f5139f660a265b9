// One descriptor for an event loop to wait on, whatever sessions come and go behind it: an epoll of the present channel's
// descriptors, and of a timer for deadlines and attempts to connect.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

// One thread at a time; never blocks.
class EventSet {
 public:
  // ResourceExhausted: no descriptors.
  static absl::StatusOr<std::unique_ptr<EventSet>> Create();

  int fd() const { return epoll_.get(); }

  // Watches `fds` besides the timer. Those of an earlier channel have gone with it. False: one of them cannot be watched.
  bool Watch(std::span<const int> fds);

  // Readable at `until_ns` of the monotonic clock at the latest; INT64_MAX: never by itself.
  void SetTimer(int64_t until_ns);

 private:
  EventSet(UniqueFd epoll, UniqueFd timer) : epoll_(std::move(epoll)), timer_(std::move(timer)) {}

  UniqueFd epoll_;
  UniqueFd timer_;
};

}  // namespace kvd
