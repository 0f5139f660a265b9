// The requests that took long, of late: what `kvcli slowlog` and the status page show. Never keys
// or values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvd {

// Where a request spent its time.
struct RequestPhases {
  int64_t waiting_ns = 0;   // behind others: for another poller, a write of the same key, its batch
  int64_t pulling_ns = 0;   // while its value was fetched from the client's memory
  int64_t evicting_ns = 0;  // while others made room for it
  int64_t executing_ns = 0;  // the rest
  int64_t stalled_ns = 0;    // while its poller had no processor, where that is known

  int64_t total_ns() const {
    return waiting_ns + pulling_ns + evicting_ns + executing_ns + stalled_ns;
  }
  // "waiting", "pulling", "evicting", "executing" or "stalled": the longest.
  std::string_view Longest() const;
};

// One that took long, and how many were late with it: those that it kept waiting, or that waited
// for the same.
struct SlowRequest {
  int64_t at_unix_us = 0;           // when it was answered
  uint32_t requests = 1;            // itself included
  std::string_view operation = {};  // a literal
  uint64_t session_id = 0;          // 0: the session has gone
  std::string name = {};            // of the client, as it calls itself: whatever bytes it likes
  uint32_t key_bytes = 0;
  uint64_t value_bytes = 0;  // that the request brought along
  RequestPhases phases = {};
};

// Thread-safe; Add is for what is rare.
class SlowLog {
 public:
  static constexpr size_t kKept = 128;

  // Forgets the oldest beyond kKept. Throws std::bad_alloc; nothing has changed then.
  void Add(SlowRequest request);
  // The newest first.
  std::vector<SlowRequest> Newest() const;
  // Requests so far, also those that are not kept.
  uint64_t total() const;

 private:
  mutable std::mutex mutex_;
  std::deque<SlowRequest> requests_;  // guarded by mutex_, as is the next; the newest first
  uint64_t total_ = 0;
};

// A line each, of words "name=value" separated by spaces; a value has neither spaces nor control
// characters.
std::string DescribeSlowRequests(std::span<const SlowRequest> requests);

}  // namespace kvd
