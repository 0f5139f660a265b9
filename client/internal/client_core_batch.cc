// GETs of many keys.
#include <algorithm>
#include <utility>

#include "client/internal/client_core.h"
#include "common/base/status_macros.h"

namespace kvd {

absl::Status ClientCore::MultiGet(std::span<const std::string_view> keys,
                                  std::span<GetResult> results, const OperationOptions& options) {
  if (!observer_.GetIsDue()) [[likely]]
    return MultiGetOnce(keys, results, options);
  observer_.TakeDue();
  const int64_t start_ns = RealClock::Get().NowMonotonicNs();
  absl::Status status = MultiGetOnce(keys, results, options);
  const bool answered =
      status.ok() && std::all_of(results.begin(), results.end(), [](const GetResult& result) {
        return result.status.ok() || absl::IsNotFound(result.status);
      });
  const int64_t end_ns = RealClock::Get().NowMonotonicNs();
  if (answered) observer_.Add(Observer::Kind::kMultiGet, end_ns - start_ns);
  observer_.Tell(counters());
  ReportIfDue(end_ns);
  return status;
}

absl::Status ClientCore::MultiGetOnce(std::span<const std::string_view> keys,
                                      std::span<GetResult> results,
                                      const OperationOptions& options) {
  if (keys.size() != results.size()) {
    return absl::InvalidArgumentError("MultiGet: there must be as many results as keys");
  }
  if (IsOver(options.deadline)) {
    for (GetResult& result : results) result.status = Over();
    return absl::OkStatus();
  }
  bool all_valid = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    all_valid = IsKey(keys[i]) && all_valid;
  }
  Session* session = forked() ? nullptr : connection_.session();
  if (session != nullptr && session->mapped() && all_valid) [[likely]] {
    MultiGetInWindow(*session, keys, results, options);
    return absl::OkStatus();
  }
  const int64_t deadline_ns = DeadlineNs(options.deadline);
  const absl::Status ready = Ready(deadline_ns);
  if (ready.ok() && all_valid && !connection_.session()->mapped()) {
    counted_.gets += keys.size();
    multi_get_.Run(keys, results, deadline_ns, options.deadline.count() == 0);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (results[i].status.ok()) {
        ++counted_.hits;
      } else if (absl::IsNotFound(results[i].status)) {
        ++counted_.misses;
      } else {
        --counted_.gets;  // counted by GetOne
        OperationOptions rest;
        rest.deadline = std::chrono::nanoseconds(
            std::max<int64_t>(1, deadline_ns - RealClock::Get().NowMonotonicNs()));
        results[i].status = GetOne(keys[i], results[i], rest);
      }
    }
    return absl::OkStatus();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    results[i].status = ready.ok() ? GetOne(keys[i], results[i], options) : ready;
  }
  return absl::OkStatus();
}

absl::Status ClientCore::GetOne(std::string_view key, GetResult& result,
                                const OperationOptions& options) {
  return WithItem(key, options, [&result](const ItemView& item) {
    AssignValue(item.value, result.value);
    result.info = InfoOf(item);
    return absl::OkStatus();
  });
}

// The processor has many loads under way at once if it learns of them early: the headers of keys to
// come are fetched while those before are looked at.
void ClientCore::MultiGetInWindow(Session& session, std::span<const std::string_view> keys,
                                  std::span<GetResult> results, const OperationOptions& options) {
  constexpr size_t kAhead = 8;
  uint64_t hashes[kAhead];
  const auto fetch = [&](size_t i) {
    hashes[i % kAhead] = session.Hash(keys[i]);
    session.window_get.Prefetch(hashes[i % kAhead]);
  };
  for (size_t i = 0; i < std::min(kAhead, keys.size()); ++i) fetch(i);
  for (size_t i = 0; i < keys.size(); ++i) {
    GetResult& result = results[i];
    const uint64_t hash = hashes[i % kAhead];
    if (i + kAhead < keys.size()) fetch(i + kAhead);
    ItemView item;
    // The session may end under a key that takes more than the usual: the rest finds out by itself.
    if (connection_.session() == &session && FindInWindow(session, keys[i], hash, item))
        [[likely]] {
      AssignValue(item.value, result.value);
      result.info = InfoOf(item);
      result.status = absl::OkStatus();
    } else {
      result.status = GetOne(keys[i], result, options);
    }
    if (connection_.session() != &session) {
      for (++i; i < keys.size(); ++i) results[i].status = GetOne(keys[i], results[i], options);
      return;
    }
  }
}

}  // namespace kvd
