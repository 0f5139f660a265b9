#include "client/cli/doctor_perf.h"

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "client/cli/perf_machine.h"
#include "client/cli/perf_probe.h"
#include "common/base/random.h"
#include "common/transport/verbs/device_info.h"

namespace kvd::cli {
namespace {

// What this machine is, of what the measured path leads over.
void LookAtMachine(Invocation& run, PerfFacts& facts) {
  unsigned cpu = 0;
  if (::getcpu(&cpu, nullptr) == 0) {
    facts.cpu_node = NodeOfCpu(cpu);
    facts.governor = GovernorOf(cpu);
  }
  facts.pressure_percent = CpuPressurePercent();
  facts.load = LoadOfLastMinute();
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    facts.processors = static_cast<unsigned>(CPU_COUNT(&allowed));
  facts.mapped_page_bytes = MappedPageBytes(ReadTextFile("/proc/self/smaps"), "kvd-region");
  if (!facts.over_rdma) return;
  const std::string& wanted = run.flags().Text("device");
  const verbs::DeviceListing listing = verbs::ListDevices();
  for (const verbs::DeviceFacts& device : listing.devices) {
    // Of several, which is used is not known here.
    if (wanted.empty() ? listing.devices.size() > 1 : device.name != wanted) continue;
    facts.device = device.name;
    facts.device_node = device.numa_node;
    facts.device_is_software = device.is_software;
    if (!device.ports.empty()) facts.device_mtu_bytes = device.ports.front().active_mtu_bytes;
  }
}

}  // namespace

PerfDiagnosis DiagnosePerf(Invocation& run, const std::string& target, bool writes,
                           DoctorReport& report) {
  PerfDiagnosis diagnosis;
  const absl::StatusOr<uint64_t> random = RandomU64FromOs();
  if (!random.ok()) {
    diagnosis.status = random.status();
    return diagnosis;
  }
  PerfOptions options;
  options.writes = writes;
  options.key_prefix = absl::StrCat("kvcli-perf:", absl::Hex(*random, absl::kZeroPad16), ":");
  options.seed = *random;
  options.interrupted = run.console().interrupted;
  options.connect = [&](uint32_t entries) { return run.TryStore(target, 0, entries); };
  PerfFacts facts;
  const PortCounters before = ReadPortCounters();
  const Clock& clock = run.console().clock;
  const int64_t began_ns = clock.NowMonotonicNs();
  const OwnProcessor own_before = ReadOwnProcessor();
  const PerfOutcome outcome = MeasurePerf(options, clock, facts);
  facts.measured_s = static_cast<double>(clock.NowMonotonicNs() - began_ns) / 1e9;
  facts.own = Between(own_before, ReadOwnProcessor());
  facts.losses = LossesBetween(before, ReadPortCounters());
  LookAtMachine(run, facts);
  ReportPerf(facts, options, report);
  diagnosis.status = outcome.status;
  diagnosis.left_behind = outcome.left_behind;
  diagnosis.key_prefix = options.key_prefix;
  return diagnosis;
}

}  // namespace kvd::cli
