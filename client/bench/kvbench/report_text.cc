#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/kvbench/kvd_store.h"
#include "client/bench/kvbench/report.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::bench {
namespace {

constexpr double kMegabyte = 1 << 20;  // as perftest counts

std::string Line() { return std::string(120, '-') + "\n"; }

double Per(uint64_t amount, uint64_t count) {
  return static_cast<double>(amount) / static_cast<double>(count);
}

std::string ServerText(const Report& report) {
  std::string text = cli::OneLine(report.target);
  if (report.runs.empty()) return text;
  const Store::Statistics& statistics = report.runs.front().result.server_before;
  if (const std::string version = StatisticOf(statistics, "version"); !version.empty()) {
    absl::StrAppend(&text, "; version ", cli::OneLine(version));
  }
  uint64_t bytes = 0;
  if (absl::SimpleAtoi(StatisticOf(statistics, "memory_bytes"), &bytes)) {
    absl::StrAppend(&text, ", ", FormatBytes(bytes), " in pages of ",
                    cli::OneLine(StatisticOf(statistics, "page_kind")));
  }
  return text;
}

std::string DeviceText(const Report& report) {
  if (!report.rdma.has_value()) return "none (shared memory, or a socket)";
  if (!report.rdma->here.has_value()) return "unknown";
  const RdmaEnd& end = *report.rdma->here;
  return absl::StrFormat("%s port %d, GID index %d (%s), MTU %d", cli::OneLine(end.device),
                         end.port, end.gid_index, end.address, end.mtu_bytes);
}

std::string WorkloadText(const Workload& work, bool all_sizes) {
  std::string text = absl::StrCat(work.mix.Text(), "; ", work.distribution.Text(), " over ",
                                  work.keys, " keys of ", work.key_size, " bytes; values of ",
                                  all_sizes ? "2 to 1048576" : work.value_sizes.text(), " bytes");
  if (work.missing > 0) absl::StrAppend(&text, "; ", work.missing * 100, " % of GETs miss");
  return text;
}

std::string ClientsText(const Options& options) {
  const Workload& work = options.workload;
  std::string text = absl::StrCat(work.clients, work.processes ? " process" : " thread",
                                  work.clients == 1 ? ""
                                  : work.processes  ? "es"
                                                    : "s");
  if (work.rate > 0) {
    absl::StrAppend(&text, ", open loop: ", work.rate, " operations/s, ",
                    work.arrivals == Arrivals::kPoisson ? "at random" : "evenly");
  } else {
    absl::StrAppend(&text, ", closed loop");
  }
  if (work.batch > 1) absl::StrAppend(&text, ", batches of ", work.batch);
  if (work.depth > 1) absl::StrAppend(&text, ", ", work.depth, " operations under way each");
  const uint32_t locations = options.client.location_cache_entries;
  absl::StrAppend(&text, ", location cache ", locations == 0 ? "off" : absl::StrCat(locations),
                  options.locations_shared ? " for all" : "");
  return text;
}

double Us(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

}  // namespace

std::string HeadText(const Report& report) {
  const Machine& machine = report.machine;
  const std::vector<std::pair<std::string, std::string>> lines = {
      {" Program", absl::StrCat(report.program, report.commit == "unknown" ? "" : ", commit ",
                                report.commit == "unknown" ? "" : report.commit)},
      {" Machine", absl::StrCat(machine.cpu, ", ", machine.cores, " cores, ", machine.kernel,
                                ", pages of ", machine.page_bytes, " bytes")},
      {" Server", ServerText(report)},
      {" Device", DeviceText(report)},
      {" Workload", WorkloadText(report.options.workload, report.options.all_sizes)},
      {" Clients", ClientsText(report.options)},
      {" Clock", absl::StrFormat("%.0f ns a reading, in each time", machine.clock_ns)},
  };
  return absl::StrCat(Line(), cli::FormatAligned(lines), Line());
}

std::string TableHead() {
  return absl::StrFormat("%-7s %8s %11s %11s %15s %11s %13s %9s %9s %10s %11s %11s %11s %18s\n",
                         " op", "#bytes", "#iterations", "t_min[usec]", "t_typical[usec]",
                         "t_avg[usec]", "t_stdev[usec]", "90%[usec]", "99%[usec]", "99.9%[usec]",
                         "99.99%[usec]", "t_max[usec]", "ops/sec", "BW average[MB/sec]");
}

std::string TableRows(const Report::Run& run) {
  std::string text;
  const Tally& sum = run.result.sum;
  for (size_t i = 0; i < kOperations; ++i) {
    if (sum.operations[i] == 0) continue;
    const LatencyHistogram& times = sum.times[i];
    const double rate = Per(sum.operations[i], 1) / run.result.seconds;
    absl::StrAppendFormat(
        &text,
        " %-6s %8.0f %11d %11.3f %15.3f %11.3f %13.3f %9.3f %9.3f %10.3f %12.3f %11.3f %11.0f "
        "%18.2f\n",
        std::string(NameOf(static_cast<Operation>(i))), run.workload.value_sizes.Mean(),
        sum.operations[i], Us(times.min()), Us(times.Percentile(0.5)), times.Mean() / 1e3,
        times.StandardDeviation() / 1e3, Us(times.Percentile(0.9)), Us(times.Percentile(0.99)),
        Us(times.Percentile(0.999)), Us(times.Percentile(0.9999)), Us(times.max()), rate,
        rate * run.workload.value_sizes.Mean() / kMegabyte);
  }
  return text;
}

std::vector<Figure> FiguresOf(const Report::Run& run) {
  const Tally& sum = run.result.sum;
  const ClientCounters& counters = sum.counters;
  std::vector<Figure> figures;
  uint64_t operations = 0;
  for (const uint64_t count : sum.operations) operations += count;
  if (operations == 0) return figures;
  const auto add = [&](std::string name, std::string key, double value, std::string unit) {
    figures.push_back({std::move(name), std::move(key), value, std::move(unit)});
  };
  add("operations of all kinds", "operations_per_second",
      static_cast<double>(operations) / run.result.seconds, "/s");
  if (run.workload.rate > 0) {
    add("behind the schedule at the end", "behind_ms", static_cast<double>(sum.behind_ns) / 1e6,
        "ms");
  }
  if (counters.gets > 0) {
    add("READs per GET", "reads_per_get", Per(counters.reads, counters.gets), "");
    add("bytes read per GET", "bytes_per_get", Per(counters.read_bytes, counters.gets), "B");
    add("doorbells per GET", "doorbells_per_get", Per(counters.read_chains, counters.gets), "");
    add("torn READs", "torn_reads", Per(counters.torn_reads, 1), "");
    add("retries (torn, moved or redirected)", "retries",
        Per(counters.torn_reads + counters.moved_items + counters.redirects, 1), "");
    add("location cache: hits per GET", "location_hits_per_get",
        Per(counters.location_hits, counters.gets), "");
    add("location cache: stale", "stale_locations", Per(counters.stale_locations, 1), "");
    add("GETs by request", "gets_by_request", Per(counters.gets_by_request, 1), "");
  }
  add("GETs that found nothing", "not_found", Per(sum.not_found, 1), "");
  if (run.workload.missing > 0) add("misses asked for", "misses", Per(sum.misses, 1), "");
  if (run.workload.modify_if_version)
    add("conditions that did not hold", "conflicts", Per(sum.conflicts, 1), "");
  if (run.result.server_cpu_us >= 0) {
    add("server's processor time per operation", "server_cpu_us_per_operation",
        static_cast<double>(run.result.server_cpu_us) / static_cast<double>(operations), "us");
  }
  add("clients' processor time per operation", "client_cpu_us_per_operation",
      static_cast<double>(sum.cpu_us) / static_cast<double>(operations), "us");
  if (run.result.load_seconds > 0) {
    add("load: items", "load_items_per_second",
        static_cast<double>(run.workload.keys) / run.result.load_seconds, "/s");
  }
  return figures;
}

std::string FiguresText(const Report::Run& run) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Figure& figure : FiguresOf(run)) {
    const bool whole = figure.value == std::floor(figure.value) || figure.value >= 1000;
    lines.emplace_back(absl::StrCat(" ", figure.name),
                       absl::StrCat(whole ? absl::StrFormat("%.0f", figure.value)
                                          : absl::StrFormat("%.4f", figure.value),
                                    figure.unit.empty() ? "" : " ", figure.unit));
  }
  std::string text = cli::FormatAligned(lines);
  if (!run.floor.has_value()) return text;
  for (const FloorLine& line : run.floor->lines) {
    const char* unit = line.is_rate ? "/s" : "us";
    absl::StrAppendFormat(&text, " %s %.2f %s, kvd's %s %.2f %s: ratio %.2f\n", line.name,
                          line.floor, unit, line.measured, line.kvd, unit, line.Ratio());
  }
  for (const std::string& note : run.floor->notes) {
    absl::StrAppend(&text, " no floor: ", cli::OneLine(note), "\n");
  }
  return text;
}

}  // namespace kvd::bench
