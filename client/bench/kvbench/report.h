// What was measured, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/bench/kvbench/floor_run.h"
#include "client/bench/kvbench/machine.h"
#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/rdma_path.h"
#include "client/bench/kvbench/runner.h"

namespace kvd::bench {

struct Report {
  std::string program;  // "kvbench 0.1.0"
  std::string commit;
  std::string target;  // as the user gave it, or the default
  Machine machine;
  std::optional<RdmaPath> rdma;
  Options options;
  struct Run {
    Workload workload;
    RunResult result;
    std::optional<FloorResult> floor;
  };
  std::vector<Run> runs;
};

// What a run comes to, each figure with its name and unit: "READs per GET" 1.135. Those that mean
// nothing for it are missing.
struct Figure {
  std::string name;  // for people
  std::string key;   // in JSON
  double value;
  std::string unit;
};
std::vector<Figure> FiguresOf(const Report::Run& run);

// The lines above the table: what was measured, where, and how.
std::string HeadText(const Report& report);
// perftest's column names and units.
std::string TableHead();
// A row for each kind of operation of the run.
std::string TableRows(const Report::Run& run);
// What follows the table of a run.
std::string FiguresText(const Report::Run& run);

// All of it; docs/performance.md describes the members.
std::string JsonText(const Report& report);

}  // namespace kvd::bench
