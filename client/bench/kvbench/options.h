// What a run is asked to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/bench_value.h"
#include "client/bench/kvbench/distribution.h"
#include "client/bench/kvbench/mix.h"
#include "client/bench/kvbench/value_size.h"
#include "client/cli/flags.h"
#include "client/kv_client.h"

namespace kvd::bench {

enum class Arrivals { kConstant, kPoisson };

// What a run does; the same for kvd and for the stores that it is compared with.
struct Workload {
  Mix mix = Mix({1, 0, 0, 0});
  Distribution distribution;
  uint64_t keys = 0;
  size_t key_size = 8;
  ValueSizes value_sizes = ValueSizes::Fixed(64);
  double missing = 0;  // of the GETs: part that asks for keys that are not there
  size_t clients = 1;
  bool processes = false;  // instead of threads
  size_t batch = 1;        // keys an operation
  size_t depth = 1;        // operations that a client has under way
  double rate = 0;         // operations a second of all clients; 0: as fast as they come
  Arrivals arrivals = Arrivals::kConstant;
  bool modify_if_version = false;  // the write of a read-modify-write has a condition
  bool load = true;
  std::chrono::nanoseconds warm_up{0};
  std::chrono::nanoseconds duration{0};  // 0: until `operations` are done
  uint64_t operations = 0;
  uint64_t sample = 1;  // one in so many operations is timed
  Verify verify = Verify::kFull;
  uint64_t seed = 1;
};

enum class Floor { kAuto, kOff, kRemote };

struct Options {
  std::string server;
  ClientOptions client;
  bool locations_shared = false;  // client.location_cache_entries are of one cache for all clients
  Workload workload;
  bool all_sizes = false;
  std::string json;  // where to write; empty: nowhere, "-": standard output
  std::string hgrm;  // beginning of the files' names; empty: none
  Floor floor = Floor::kAuto;
};

// kvbench's flags, as help lists them.
std::span<const cli::Flag> BenchFlags();

// InvalidArgument names the flag, its value and what is allowed.
absl::StatusOr<Options> OptionsOf(const cli::FlagValues& flags);

}  // namespace kvd::bench
