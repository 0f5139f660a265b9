// The programs of perftest: what the devices can do without a kvd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/rdma_path.h"

namespace kvd::bench {

struct PerftestRun {
  std::string program;  // "ib_read_lat", "ib_send_lat", "ib_read_bw"
  uint64_t bytes = 0;
  uint64_t iterations = 0;
  size_t queue_pairs = 1;  // bw only
  RdmaEnd here;
  std::optional<RdmaEnd> server;  // where this side starts the other one too
  std::string host;
};

struct PerftestResult {
  double typical_us = 0;           // lat: the median
  double messages_per_second = 0;  // bw
};

// Whether the program can be started.
bool HasProgram(const std::string& program);

// What somebody has to start at the server's end.
std::string ServerCommand(const PerftestRun& run);

// Blocks until it is over, for seconds. Errors: the program's last words.
absl::StatusOr<PerftestResult> RunPerftest(const PerftestRun& run);

// The result in what the program printed for messages of `bytes`; nothing if it has no line for
// them.
std::optional<PerftestResult> ParsePerftest(std::string_view output, uint64_t bytes,
                                            bool bandwidth);

}  // namespace kvd::bench
