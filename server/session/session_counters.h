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
  // What a client can say at the most of one thing: no session that is told the truth of comes
  // near.
  static constexpr uint64_t kReportedMax = uint64_t{1} << 60;

  Counter requests;
  Counter writes;  // of these, that ask to change something
  // Of requests and replies, with their headers and with values that are fetched from the client.
  Counter received_bytes;
  Counter sent_bytes;

  // Takes over what is more than was known. Returns what is new.
  ReportedCounts Note(const ReportedCounts& counts) {
    auto words = std::bit_cast<ReportedWords>(counts);
    for (size_t i = 0; i < kReportedCounts; ++i) {
      const uint64_t known = reported_[i].get();
      const uint64_t told = std::clamp(words[i], known, kReportedMax);
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

 private:
  std::array<Counter, kReportedCounts> reported_;
};

}  // namespace kvd
