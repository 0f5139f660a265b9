// How long requests took, by what they ask for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/latency_histogram.h"
#include "common/base/statistic_list.h"
#include "common/layout/frames.h"

namespace kvd {

// The writes each by itself, everything else together: GETs that clients do by themselves are not
// requests.
enum class RequestKind : uint8_t {
  kPut,
  kDelete,
  kIncrement,
  kAppend,
  kPrepend,
  kTouch,
  kFlush,
  kOther,
};
inline constexpr size_t kRequestKinds = static_cast<size_t>(RequestKind::kOther) + 1;

namespace internal {

constexpr RequestKind KindOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPut:
      return RequestKind::kPut;
    case Opcode::kDelete:
      return RequestKind::kDelete;
    case Opcode::kIncrement:
      return RequestKind::kIncrement;
    case Opcode::kAppend:
      return RequestKind::kAppend;
    case Opcode::kPrepend:
      return RequestKind::kPrepend;
    case Opcode::kTouch:
      return RequestKind::kTouch;
    case Opcode::kFlush:
      return RequestKind::kFlush;
    default:
      return RequestKind::kOther;
  }
}

inline constexpr std::array<RequestKind, kOpcodeLast + 1> kKindOf = [] {
  std::array<RequestKind, kOpcodeLast + 1> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = KindOf(static_cast<Opcode>(i));
  return kinds;
}();

}  // namespace internal

// Of one poller: from the moment at which it took a request to that at which the reply was posted.
// The poller alone adds; anybody reads.
class RequestTimes {
 public:
  // `opcode`: one that there is.
  void Add(uint8_t opcode, int64_t ns) {
    times_[static_cast<size_t>(internal::kKindOf[opcode])].Tally(ns);
  }
  // To be merged into another: its own count() is 0.
  const LatencyHistogram& of(RequestKind kind) const { return times_[static_cast<size_t>(kind)]; }

 private:
  std::array<LatencyHistogram, kRequestKinds> times_;
};

// Of all pollers together: percentiles for the statistics, a histogram for the metrics.
void AddRequestTimes(std::span<const RequestTimes* const> pollers, StatisticList& list);

}  // namespace kvd
