#include "client/internal/observer.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kvd {
namespace {

uint32_t GetSampling(uint32_t sampling) {
  if (sampling == 0) return Observer::kSamplingForCounters;
  return std::min(sampling, Observer::kSamplingMax);
}

uint32_t WriteSampling(uint32_t sampling) {
  return std::max<uint32_t>(1, GetSampling(sampling) / Observer::kWritesPerGet);
}

// A histogram begins as zeros, which the kernel brings page by page as they are needed. Empty where
// there is no memory, or none is wanted: nothing is timed then.
MappedMemory MemoryOfTimes(bool wanted) {
  if (!wanted) return {};
  absl::StatusOr<MappedMemory> memory =
      MappedMemory::Map({.length_bytes = Observer::kKinds * sizeof(LatencyHistogram),
                         .protection = PROT_READ | PROT_WRITE,
                         .flags = MAP_PRIVATE});
  return memory.ok() ? *std::move(memory) : MappedMemory();
}

}  // namespace

Observer::Observer(const ClientOptions& options)
    : gets_(GetSampling(options.latency_sampling)),
      writes_(WriteSampling(options.latency_sampling)),
      get_mean_(GetSampling(options.latency_sampling)),
      write_mean_(WriteSampling(options.latency_sampling)),
      tell_each_(get_mean_ == 1 ? 1 : get_mean_ * kSamplingsPerTell),
      on_error_(options.on_connection_error),
      times_memory_(MemoryOfTimes(options.latency_sampling != 0)),
      times_of_(reinterpret_cast<LatencyHistogram*>(times_memory_.base())) {}

void Observer::Tell(const ClientCounters& counters) {
  const auto values = std::bit_cast<std::array<uint64_t, kCounters>>(counters);
  for (size_t i = 0; i < kCounters; ++i) counters_[i].Set(values[i]);
}

void Observer::ConnectionFailed(std::string_view target, const absl::Status& cause) {
  errors_.Add(1);
  if (reported_) return;
  reported_ = true;
  ConnectionError error{std::string(target), cause, RemedyOf(cause)};
  {
    const std::lock_guard lock(mutex_);
    first_ = error;
  }
  if (on_error_) on_error_(error);
}

LatencySummary Observer::Summary(Kind kind) const {
  LatencySummary summary;
  if (times_of_ == nullptr) return summary;
  const LatencyHistogram times = times_of_[static_cast<size_t>(kind)];  // one that stands still
  summary.count = times.count();
  summary.min_ns = times.min();
  summary.mean_ns = static_cast<uint64_t>(times.Mean());
  summary.p50_ns = times.Percentile(0.5);
  summary.p90_ns = times.Percentile(0.9);
  summary.p99_ns = times.Percentile(0.99);
  summary.p999_ns = times.Percentile(0.999);
  summary.max_ns = times.max();
  return summary;
}

ClientObservation Observer::Read() const {
  ClientObservation seen;
  std::array<uint64_t, kCounters> values;
  for (size_t i = 0; i < kCounters; ++i) values[i] = counters_[i].get();
  seen.counters = std::bit_cast<ClientCounters>(values);
  seen.known_gets = Summary(Kind::kKnownGet);
  seen.cold_gets = Summary(Kind::kColdGet);
  seen.missed_gets = Summary(Kind::kMissedGet);
  seen.multi_gets = Summary(Kind::kMultiGet);
  seen.writes = Summary(Kind::kWrite);
  seen.multi_writes = Summary(Kind::kMultiWrite);
  seen.requests = Summary(Kind::kRequest);
  seen.connection_errors = errors_.get();
  const std::lock_guard lock(mutex_);
  seen.first_error = first_;
  return seen;
}

std::string RemedyOf(const absl::Status& cause) {
  const std::string_view text(cause.message().data(), cause.message().size());
  if (const size_t advice = text.find("; "); advice != std::string_view::npos)
    return std::string(text.substr(advice + 2));
  switch (cause.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return "the client connects again by itself; if that lasts, see whether kvd runs, and over "
             "RDMA whether the link is up and lets UDP port 4791 through";
    case absl::StatusCode::kPermissionDenied:
      return "the client connects again by itself; if that lasts, kvd's log says why it refuses";
    case absl::StatusCode::kResourceExhausted:
      return "the client connects again by itself; kvd may have --max_clients sessions, or this "
             "process its limit of locked memory";
    default:
      return "the client connects again by itself; use the same version of kvd on both sides, and "
             "report this";
  }
}

}  // namespace kvd
