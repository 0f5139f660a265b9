#include "client/bench/kvbench/options.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/bench/kvbench/acknowledged_counter.h"
#include "client/bench/kvbench/bench_key.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace kvd::bench {
namespace {

constexpr size_t kKeySizeMax = 4096;
constexpr size_t kClientsMax = 1024;
constexpr size_t kBatchMax = 4096;
constexpr size_t kDepthMax = 1024;
constexpr uint64_t kLocationsMax = uint64_t{1} << 30;
constexpr uint64_t kLocationsPerKey = 4;

absl::Status Wrong(std::string_view flag, std::string_view value, std::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("--", ToAbsl(flag), "=", cli::OneLine(value),
                                                 " is not possible; ", ToAbsl(allowed)));
}

// `flag` as a number within limits.
absl::StatusOr<uint64_t> CountOf(const cli::FlagValues& flags, std::string_view flag, uint64_t low,
                                 uint64_t high) {
  const uint64_t count = flags.Count(flag);
  if (count >= low && count <= high) return count;
  return Wrong(flag, flags.Text(flag), absl::StrCat("give ", low, " to ", high));
}

// What `parse` makes of the flag's text; its message begins with that text.
template <typename Parse>
auto Parsed(const cli::FlagValues& flags, std::string_view flag, Parse parse)
    -> decltype(parse(std::string_view())) {
  auto parsed = parse(flags.Text(flag));
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat("--", ToAbsl(flag), "=", parsed.status().message()));
}

absl::StatusOr<std::chrono::nanoseconds> WarmUpOf(const cli::FlagValues& flags) {
  const std::string& text = flags.Text("warmup");
  absl::Duration time;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= 86400) {
    time = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &time) || time < absl::ZeroDuration() ||
             time > absl::Hours(24)) {
    return Wrong("warmup", text, "give a time of up to 24h such as 2s or 500ms, or 0 for none");
  }
  return absl::ToChronoNanoseconds(time);
}

absl::Status TakeLocations(const cli::FlagValues& flags, Options& options) {
  const std::string& text = flags.Text("location_cache");
  absl::string_view size = text;
  options.locations_shared = absl::ConsumePrefix(&size, "shared");
  if (options.locations_shared && options.workload.processes) {
    return Wrong("location_cache", text,
                 "processes have no memory in common: leave out --processes, or give on");
  }
  uint64_t entries = 0;
  if (options.locations_shared ? size.empty() : size == "on") {
    entries = std::min(options.workload.keys * kLocationsPerKey, kLocationsMax);
  } else if (size != "off" || options.locations_shared) {
    const bool split = !options.locations_shared || absl::ConsumePrefix(&size, ":");
    if (!split || !absl::SimpleAtoi(size, &entries) || entries > kLocationsMax ||
        (options.locations_shared && entries == 0)) {
      return Wrong("location_cache", text,
                   absl::StrCat("give on, off, shared or a number of locations up to ",
                                kLocationsMax, ", or shared:NUMBER"));
    }
  }
  options.client.location_cache_entries = static_cast<uint32_t>(entries);
  return absl::OkStatus();
}

absl::StatusOr<double> RateOf(const cli::FlagValues& flags) {
  double rate = 0;
  const std::string& text = flags.Text("rate");
  if (!absl::SimpleAtod(text, &rate) || !(rate >= 0 && rate <= 1e9)) {
    return Wrong("rate", text, "give operations a second, above 0 and at most 1e9; 0: closed loop");
  }
  return rate;
}

absl::Status TakeKeys(const cli::FlagValues& flags, Workload& work) {
  KVD_ASSIGN_OR_RETURN(work.key_size, CountOf(flags, "key_size", 1, kKeySizeMax));
  KVD_ASSIGN_OR_RETURN(const uint64_t misses, CountOf(flags, "misses", 0, 100));
  work.missing = static_cast<double>(misses) / 100;
  // The upper half is for keys that are not there, and the rest of the lower one for those to come.
  const bool more = misses > 0 || work.mix.Has(Operation::kInsert);
  const uint64_t most = KeyWriter::CountMax(work.key_size) / (more ? 2 : 1);
  if (const uint64_t keys = flags.Count("keys"); keys < 1 || keys > most) {
    return Wrong("keys", flags.Text("keys"),
                 absl::StrCat("give 1 to ", most, ": there are no more with --key_size=",
                              work.key_size, more ? " where half of them is not stored" : ""));
  }
  work.keys = flags.Count("keys");
  return absl::OkStatus();
}

absl::Status TakeLoop(const cli::FlagValues& flags, Workload& work) {
  KVD_ASSIGN_OR_RETURN(work.clients, CountOf(flags, "clients", 1, kClientsMax));
  work.processes = flags.Switch("processes");
  KVD_ASSIGN_OR_RETURN(work.batch, CountOf(flags, "batch", 1, kBatchMax));
  KVD_ASSIGN_OR_RETURN(work.depth, CountOf(flags, "depth", 1, kDepthMax));
  KVD_ASSIGN_OR_RETURN(work.rate, RateOf(flags));
  work.arrivals = flags.Text("arrivals") == "poisson" ? Arrivals::kPoisson : Arrivals::kConstant;
  work.modify_if_version = flags.Text("rmw") == "cas";
  KVD_ASSIGN_OR_RETURN(work.sample, CountOf(flags, "sample", 1, 1'000'000));
  if (work.batch > 1 && work.depth > 1) {
    return Wrong("depth", flags.Text("depth"),
                 "a client has one batch under way: give --batch or --depth");
  }
  if (work.batch > 1 && work.modify_if_version) {
    return Wrong("rmw", "cas",
                 "a batch is written without conditions: leave out --batch, or give --rmw=put");
  }
  if (work.sample > 1 && work.rate > 0) {
    return Wrong("sample", flags.Text("sample"),
                 "an open loop times every operation: leave it out");
  }
  const size_t inserting = work.clients * std::max(work.batch, work.depth);
  if (work.mix.Has(Operation::kInsert) && inserting > AcknowledgedCounter::kOutstandingMax) {
    return Wrong("clients", flags.Text("clients"),
                 absl::StrCat("--clients times --batch or --depth is at most ",
                              AcknowledgedCounter::kOutstandingMax, " where keys are inserted"));
  }
  return absl::OkStatus();
}

absl::Status TakeLength(const cli::FlagValues& flags, Workload& work) {
  if (flags.IsSet("operations")) {
    if (flags.IsSet("seconds")) {
      return Wrong("operations", flags.Text("operations"),
                   "give --operations (-n) or --seconds (-D)");
    }
    KVD_ASSIGN_OR_RETURN(work.operations, CountOf(flags, "operations", 1, uint64_t{1} << 60));
  } else {
    work.duration = flags.Duration("seconds");
  }
  KVD_ASSIGN_OR_RETURN(work.warm_up, WarmUpOf(flags));
  return absl::OkStatus();
}

absl::Status TakeClient(const cli::FlagValues& flags, Options& options) {
  options.server = flags.Text("server");
  options.client.deadline = flags.Duration("deadline");
  options.client.key_file = flags.Text("key_file");
  options.client.key_name = flags.Text("key_name");
  options.client.rdma_device = flags.Text("device");
  options.client.rdma_connect_by_tcp = flags.Text("connect") == "tcp";
  if (flags.IsSet("gid_index")) {
    if (!options.client.rdma_connect_by_tcp) {
      return Wrong("gid_index", flags.Text("gid_index"),
                   "it is for --connect=tcp; rdma_cm chooses the GID by the address");
    }
    options.client.rdma_gid_index =
        static_cast<int>(std::min<uint64_t>(flags.Count("gid_index"), INT32_MAX));
  }
  options.client.read_whole_buckets = flags.Switch("read_whole_buckets");
  options.client.credits = static_cast<uint32_t>(std::max<size_t>(16, options.workload.depth));
  return TakeLocations(flags, options);
}

}  // namespace

absl::StatusOr<Options> OptionsOf(const cli::FlagValues& flags) {
  Options options;
  Workload& work = options.workload;
  KVD_ASSIGN_OR_RETURN(const NamedMix mix, Parsed(flags, "mix", ParseMix));
  work.mix = mix.mix;
  work.distribution = mix.distribution;
  if (flags.IsSet("dist")) {
    KVD_ASSIGN_OR_RETURN(work.distribution, Parsed(flags, "dist", ParseDistribution));
  }
  KVD_ASSIGN_OR_RETURN(work.value_sizes, Parsed(flags, "value_size", ParseValueSizes));
  KVD_RETURN_IF_ERROR(TakeKeys(flags, work));
  KVD_RETURN_IF_ERROR(TakeLoop(flags, work));
  KVD_RETURN_IF_ERROR(TakeLength(flags, work));
  work.load = flags.Switch("load");
  work.seed = flags.Count("seed");
  const std::string& verify = flags.Text("verify");
  work.verify = verify == "full" ? Verify::kFull : verify == "head" ? Verify::kHead : Verify::kOff;
  options.all_sizes = flags.Switch("all");
  if (options.all_sizes && (flags.IsSet("value_size") || !work.load)) {
    return Wrong(
        "all", "true",
        "it sets the size of values and stores them: leave out --value_size and --load=false");
  }
  options.json = flags.Text("json");
  options.hgrm = flags.Text("hgrm");
  const std::string& floor = flags.Text("floor");
  options.floor = floor == "off" ? Floor::kOff : floor == "remote" ? Floor::kRemote : Floor::kAuto;
  KVD_RETURN_IF_ERROR(TakeClient(flags, options));
  return options;
}

}  // namespace kvd::bench
