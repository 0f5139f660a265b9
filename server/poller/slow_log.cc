#include "server/poller/slow_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "server/session/session_report.h"

namespace kvd {

std::string_view RequestPhases::Longest() const {
  const std::pair<int64_t, std::string_view> phases[] = {{executing_ns, "executing"},
                                                         {evicting_ns, "evicting"},
                                                         {pulling_ns, "pulling"},
                                                         {waiting_ns, "waiting"},
                                                         {stalled_ns, "stalled"}};
  return std::max_element(std::begin(phases), std::end(phases),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

void SlowLog::Add(SlowRequest request) {
  const std::lock_guard lock(mutex_);
  const uint64_t requests = request.requests;
  requests_.push_front(std::move(request));
  if (requests_.size() > kKept) requests_.pop_back();
  total_ += requests;
}

std::vector<SlowRequest> SlowLog::Newest() const {
  const std::lock_guard lock(mutex_);
  return {requests_.begin(), requests_.end()};
}

uint64_t SlowLog::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::string DescribeSlowRequests(std::span<const SlowRequest> requests) {
  std::string text;
  for (const SlowRequest& request : requests) {
    const RequestPhases& phases = request.phases;
    absl::StrAppend(&text, "at_unix_us=", request.at_unix_us, " requests=", request.requests,
                    " operation=", ToAbsl(request.operation), " session=", request.session_id,
                    " name=", request.name.empty() ? "-" : Harmless(request.name),
                    " key_bytes=", request.key_bytes, " value_bytes=", request.value_bytes);
    absl::StrAppend(
        &text, " us=", phases.total_ns() / 1000, " phase=", ToAbsl(phases.Longest()),
        " waiting_us=", phases.waiting_ns / 1000, " pulling_us=", phases.pulling_ns / 1000,
        " evicting_us=", phases.evicting_ns / 1000, " executing_us=", phases.executing_ns / 1000,
        " stalled_us=", phases.stalled_ns / 1000, "\n");
  }
  return text;
}

}  // namespace kvd
