// kvd's figures beside those of the wire alone.
#pragma once

#include <string>
#include <vector>

#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/rdma_path.h"
#include "client/bench/kvbench/runner.h"

namespace kvd::bench {

struct FloorLine {
  std::string name;  // "ib_read_lat 1024 B"
  double floor = 0;
  std::string measured;  // "get t_typical"
  double kvd = 0;
  bool is_rate = false;  // per second; otherwise microseconds
  double Ratio() const { return floor > 0 ? kvd / floor : 0; }
};

struct FloorResult {
  std::vector<FloorLine> lines;
  std::vector<std::string> notes;  // why there is no more
};

// Over RDMA: runs perftest with messages of the size that the run's READs had on average, and for
// PUTs of the values' size: one at a time against latencies, many at once against rates. Blocks for
// seconds. Asked for or not, it explains why nothing was run, unless the target is shared memory.
FloorResult MeasureFloor(const Options& options, const RdmaPath& path, const RunResult& result);

}  // namespace kvd::bench
