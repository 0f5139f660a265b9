#include "client/bench/kvbench/floor_run.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/bench/kvbench/perftest.h"

namespace kvd::bench {
namespace {

class FloorRun {
 public:
  FloorRun(const Options& options, const RdmaPath& path, const RunResult& result)
      : work_(options.workload),
        path_(path),
        result_(result),
        remote_(options.floor == Floor::kRemote) {}

  FloorResult Measure() && {
    if (!path_.here.has_value())
      return Because("no RDMA device has the address that the route begins at");
    if (!remote_ && !path_.server.has_value()) {
      return Because(absl::StrCat(
          "the server is another machine; --floor=remote measures against perftest there"));
    }
    const ClientCounters& counters = result_.sum.counters;
    if (counters.reads > 0) {
      const auto bytes = static_cast<uint64_t>(std::llround(
          static_cast<double>(counters.read_bytes) / static_cast<double>(counters.reads)));
      if (OneAtATime()) {
        Latency("ib_read_lat", bytes, Operation::kGet, 1);
      } else {
        Rate("ib_read_bw", bytes);
      }
    }
    if (OneAtATime()) {
      // One way; a PUT is a message there and one back.
      const auto bytes = static_cast<uint64_t>(std::llround(work_.value_sizes.Mean()));
      Latency("ib_send_lat", bytes, Operation::kPut, 2);
    }
    return std::move(floor_);
  }

 private:
  bool OneAtATime() const { return work_.batch == 1 && work_.depth == 1 && work_.clients == 1; }

  FloorResult Because(std::string why) {
    floor_.notes.push_back(std::move(why));
    return std::move(floor_);
  }

  std::optional<PerftestResult> RunProgram(const std::string& program, uint64_t bytes) {
    if (!HasProgram(program)) {
      floor_.notes.push_back(absl::StrCat(program, " is not installed (package perftest)"));
      return std::nullopt;
    }
    PerftestRun run{.program = program,
                    .bytes = std::max<uint64_t>(bytes, 1),
                    .iterations = 3000,
                    .queue_pairs = work_.clients,
                    .here = *path_.here,
                    .server = remote_ ? std::nullopt : path_.server,
                    .host = path_.host};
    const absl::StatusOr<PerftestResult> done = RunPerftest(run);
    if (done.ok()) return *done;
    floor_.notes.push_back(std::string(done.status().message()));
    if (remote_) floor_.notes.push_back(absl::StrCat("start there: ", ServerCommand(run)));
    return std::nullopt;
  }

  void Latency(const std::string& program, uint64_t bytes, Operation operation, double times) {
    const LatencyHistogram& times_of = result_.sum.times[static_cast<size_t>(operation)];
    if (times_of.count() == 0) return;
    if (const auto done = RunProgram(program, bytes)) {
      floor_.lines.push_back({absl::StrCat(times == 1 ? "" : "2 x ", program, " ", bytes, " B"),
                              done->typical_us * times,
                              absl::StrCat(std::string(NameOf(operation)), " t_typical"),
                              static_cast<double>(times_of.Percentile(0.5)) / 1e3, false});
    }
  }

  void Rate(const std::string& program, uint64_t bytes) {
    if (result_.sum.counters.gets == 0 || result_.seconds <= 0) return;
    if (const auto done = RunProgram(program, bytes)) {
      floor_.lines.push_back(
          {absl::StrCat(program, " ", bytes, " B"), done->messages_per_second, "GETs",
           static_cast<double>(result_.sum.counters.gets) / result_.seconds, true});
    }
  }

  const Workload& work_;
  const RdmaPath& path_;
  const RunResult& result_;
  const bool remote_;
  FloorResult floor_;
};

}  // namespace

FloorResult MeasureFloor(const Options& options, const RdmaPath& path, const RunResult& result) {
  return FloorRun(options, path, result).Measure();
}

}  // namespace kvd::bench
