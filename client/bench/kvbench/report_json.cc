#include <nlohmann/json.hpp>

#include "client/bench/kvbench/counters.h"
#include "client/bench/kvbench/report.h"

namespace kvd::bench {
namespace {

using Json = nlohmann::ordered_json;

double Us(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

Json TimesJson(const LatencyHistogram& times) {
  Json json = {{"timed", times.count()},
               {"min", Us(times.min())},
               {"mean", times.Mean() / 1e3},
               {"stdev", times.StandardDeviation() / 1e3}};
  constexpr struct {
    const char* name;
    double part;
  } kPercentiles[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};
  for (const auto& percentile : kPercentiles)
    json[percentile.name] = Us(times.Percentile(percentile.part));
  json["max"] = Us(times.max());
  return json;
}

Json StatisticsJson(const Store::Statistics& statistics) {
  Json json = Json::object();
  for (const auto& [name, value] : statistics) json[name] = value;
  return json;
}

Json EndJson(const std::optional<RdmaEnd>& end) {
  if (!end.has_value()) return nullptr;
  return {{"device", end->device},
          {"port", end->port},
          {"gid_index", end->gid_index},
          {"mtu_bytes", end->mtu_bytes},
          {"address", end->address}};
}

Json WorkloadJson(const Workload& work) {
  return {{"mix", work.mix.Text()},
          {"distribution", work.distribution.Text()},
          {"keys", work.keys},
          {"key_bytes", work.key_size},
          {"value_bytes", work.value_sizes.text()},
          {"value_bytes_mean", work.value_sizes.Mean()},
          {"missing", work.missing},
          {"clients", work.clients},
          {"processes", work.processes},
          {"batch", work.batch},
          {"depth", work.depth},
          {"rate", work.rate},
          {"arrivals", work.arrivals == Arrivals::kPoisson ? "poisson" : "constant"},
          {"sample", work.sample},
          {"seed", work.seed}};
}

Json RunJson(const Report::Run& run) {
  const RunResult& result = run.result;
  Json json = {{"workload", WorkloadJson(run.workload)},
               {"seconds", result.seconds},
               {"load_seconds", result.load_seconds},
               {"interrupted", result.interrupted}};
  if (result.failure.has_value()) {
    json["failure"] = {{"asked", result.failure->asked},
                       {"status", result.failure->status.ToString()}};
  }
  Json& operations = json["operations"] = Json::object();
  for (size_t i = 0; i < kOperations; ++i) {
    if (result.sum.operations[i] == 0) continue;
    operations[std::string(NameOf(static_cast<Operation>(i)))] = {
        {"count", result.sum.operations[i]},
        {"per_second", static_cast<double>(result.sum.operations[i]) / result.seconds},
        {"time_us", TimesJson(result.sum.times[i])}};
  }
  Json& figures = json["figures"] = Json::object();
  for (const Figure& figure : FiguresOf(run)) figures[figure.key] = figure.value;
  Json& counters = json["counters"] = Json::object();
  for (const CounterField& counter : kCounterFields) {
    counters[std::string(counter.name)] = result.sum.counters.*counter.field;
  }
  json["value_bytes_read"] = result.sum.bytes_read;
  json["value_bytes_written"] = result.sum.bytes_written;
  json["server"] = {
      {"cpu_us", result.server_cpu_us < 0 ? Json(nullptr) : Json(result.server_cpu_us)},
      {"before", StatisticsJson(result.server_before)},
      {"after", StatisticsJson(result.server_after)}};
  if (run.floor.has_value()) {
    Json& floor = json["floor"] = {{"lines", Json::array()}, {"notes", run.floor->notes}};
    for (const FloorLine& line : run.floor->lines) {
      floor["lines"].push_back({{"floor", line.name},
                                {"measured", line.measured},
                                {"unit", line.is_rate ? "per_second" : "us"},
                                {"floor_value", line.floor},
                                {"value", line.kvd},
                                {"ratio", line.Ratio()}});
    }
  }
  return json;
}

}  // namespace

std::string JsonText(const Report& report) {
  Json json = {{"program", report.program},
               {"commit", report.commit},
               {"target", report.target},
               {"machine",
                {{"cpu", report.machine.cpu},
                 {"cores", report.machine.cores},
                 {"kernel", report.machine.kernel},
                 {"page_bytes", report.machine.page_bytes},
                 {"clock_ns", report.machine.clock_ns}}},
               {"location_cache_entries", report.options.client.location_cache_entries},
               {"location_cache_shared", report.options.locations_shared},
               {"read_whole_buckets", report.options.client.read_whole_buckets}};
  if (report.rdma.has_value()) {
    json["rdma"] = {{"host", report.rdma->host},
                    {"here", EndJson(report.rdma->here)},
                    {"server", EndJson(report.rdma->server)}};
  }
  Json& runs = json["runs"] = Json::array();
  for (const Report::Run& run : report.runs) runs.push_back(RunJson(run));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvd::bench
