// What a client tells its server of its counters, so that somebody who looks at the server sees
// what clients do by themselves: now and then, and only if there is something new.
//
// What is told in a session is what came together since the session began, so that a report that is
// lost is made good by the next one, and none counts twice. What the last report of a session did
// not have yet, the next session's have; a report that was lost together with its session is the
// one that stays lost. A server that began anew is told nothing of what was before it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "client/kv_client.h"
#include "common/layout/reported_counts.h"

namespace kvd {

class CountReport {
 public:
  static constexpr int64_t kEachNs = 2'000'000'000;

  // A session begins. `wanted`: its server takes counts. `same_server`: which knows what was told
  // in the last session, and misses the rest.
  void Begin(bool wanted, bool same_server, const ReportedCounts& now, int64_t now_ns) {
    wanted_ = wanted;
    next_ns_ = now_ns + kEachNs;
    if (!same_server) told_ = Words(now);
    before_ = told_;
  }

  bool wanted() const { return wanted_; }
  // Whether it is time to look for something new.
  bool due(int64_t now_ns) const { return wanted_ && now_ns >= next_ns_; }
  bool anything_new(const ReportedCounts& now) const { return Words(now) != told_; }

  // What to tell.
  ReportedCounts SinceBegin(const ReportedCounts& now) const {
    ReportedWords words = Words(now);
    for (size_t i = 0; i < kReportedCounts; ++i) words[i] -= before_[i];
    return std::bit_cast<ReportedCounts>(words);
  }
  // It is on its way; or there was nothing.
  void Told(const ReportedCounts& now, int64_t now_ns) {
    told_ = Words(now);
    next_ns_ = now_ns + kEachNs;
  }

 private:
  static ReportedWords Words(const ReportedCounts& counts) {
    return std::bit_cast<ReportedWords>(counts);
  }

  bool wanted_ = false;
  int64_t next_ns_ = 0;
  ReportedWords told_{};    // of the client's life
  ReportedWords before_{};  // the same, when the session began
};

// Counters as the report has them.
constexpr ReportedCounts ReportedOf(const ClientCounters& counters) {
  return {.gets = counters.gets,
          .hits = counters.hits,
          .misses = counters.misses,
          .reads = counters.reads,
          .read_bytes = counters.read_bytes,
          .torn_reads = counters.torn_reads,
          .retries = counters.moved_items + counters.redirects + counters.stale_locations,
          .fallbacks = counters.gets_by_request,
          .read_errors = counters.read_errors};
}

}  // namespace kvd
