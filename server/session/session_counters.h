// What is counted of one session, and what its client says of itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "common/base/counter.h"
#include "common/layout/reported_counts.h"

namespace kvd {

// The session's poller alone writes; any thread reads.
class SessionCounters {
 public:
  // More than one client, which is one thread, can do: GETs of items in its cache take longer, and
  // no memory and no network is as fast.
  static constexpr uint64_t kNsPerCountMin = 10;
  static constexpr uint64_t kReadBytesPerNsMax = 100;
  // A poller may learn of a session, and take its first reports, after its client began to read.
  static constexpr int64_t kGraceNs = 10'000'000;

  Counter requests;
  Counter writes;  // of these, that ask to change something
  // Of requests and replies, with their headers and with values that are fetched from the client.
  Counter received_bytes;
  Counter sent_bytes;

  // Before it reports anything.
  void Begin(int64_t now_ns) { began_ns_ = now_ns; }

  // Takes over what is more than was known. Returns what is new: nothing, if anything of it is more
  // than can be in the time that the session has had. A report has all that came together, so one
  // that came too early is made good by the next.
  ReportedCounts Note(const ReportedCounts& counts, int64_t now_ns) {
    if (!CanBe(counts, now_ns)) {
      disbelieved_.Add(1);
      return {};
    }
    auto words = std::bit_cast<ReportedWords>(counts);
    for (size_t i = 0; i < kReportedCounts; ++i) {
      const uint64_t known = reported_[i].get();
      const uint64_t told = std::max(words[i], known);
      reported_[i].Set(told);
      words[i] = told - known;
    }
    return std::bit_cast<ReportedCounts>(words);
  }

  ReportedCounts reported() const {
    ReportedWords words;
    for (size_t i = 0; i < kReportedCounts; ++i) words[i] = reported_[i].get();
    return std::bit_cast<ReportedCounts>(words);
  }

  // Reports of which nothing was taken over.
  uint64_t disbelieved_reports() const { return disbelieved_.get(); }

 private:
  bool CanBe(const ReportedCounts& counts, int64_t now_ns) const {
    const auto ns = static_cast<uint64_t>(std::max<int64_t>(0, now_ns - began_ns_) + kGraceNs);
    if (counts.read_bytes / kReadBytesPerNsMax > ns) return false;
    ReportedCounts others = counts;
    others.read_bytes = 0;
    const auto words = std::bit_cast<ReportedWords>(others);
    return *std::max_element(words.begin(), words.end()) <= ns / kNsPerCountMin;
  }

  int64_t began_ns_ = 0;
  Counter disbelieved_;
  std::array<Counter, kReportedCounts> reported_;
};

}  // namespace kvd
