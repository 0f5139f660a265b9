#include "client/cli/doctor_machine.h"

#include <utility>

#include "client/cli/failure.h"
#include "common/base/units.h"
#include "common/transport/verbs/local_check.h"

namespace kvd::cli {
namespace {

// Queues and buffers besides the region, generously.
constexpr uint64_t kBuffersBytes = 16 * kMiB;
constexpr uint64_t kMemoryBytesDefault = 64 * kMiB;

}  // namespace

void CheckThisMachine(Invocation& run, std::string_view target, const verbs::LocalFacts& facts,
                      DoctorReport& report) {
  const FlagValues& flags = run.flags();
  verbs::LocalNeeds needs;
  needs.device = flags.Text("device");
  if (flags.IsDeclared("address")) needs.address = flags.Text("address");
  needs.memory_bytes = flags.IsDeclared("memory") ? flags.Count("memory") : kMemoryBytesDefault;
  needs.buffers_bytes = kBuffersBytes;
  needs.hugepages = verbs::HugepageNeed::kPreferred;
  // Who names a device, by --device, wants that one. Who has a device and asks for nothing in
  // particular wants it to work.
  needs.rdma_required = IsRdmaTarget(target) || !needs.device.empty() || !needs.address.empty() ||
                        (target.empty() && !facts.kernel_devices.empty());
  for (verbs::CheckResult& result : verbs::CheckLocal(facts, needs)) report.Add(std::move(result));
}

}  // namespace kvd::cli
