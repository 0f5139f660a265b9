// devices: the RDMA devices of this machine.
#include <algorithm>

#include "client/cli/commands.h"
#include "client/cli/devices_text.h"
#include "client/cli/invocation.h"
#include "common/transport/verbs/local_check.h"

namespace kvd::cli {
namespace {

ExitCode RunDevices(Invocation& run) {
  const verbs::LocalFacts facts = verbs::GatherLocalFacts();
  verbs::LocalNeeds needs;
  needs.rdma_required = true;
  needs.device = run.arguments().empty() ? run.flags().Text("device") : run.arguments().front();
  std::vector<verbs::DeviceFacts> devices = facts.listing.devices;
  if (!needs.device.empty()) {
    std::erase_if(devices,
                  [&](const verbs::DeviceFacts& device) { return device.name != needs.device; });
  }
  if (!devices.empty() || run.format() == OutputFormat::kJson) {
    run.console().out.Write(FormatDevices(run.format(), devices));
  }
  if (!devices.empty()) return ExitCode::kDone;
  return run.Fail(needs.device, {ExitCode::kNotFound, verbs::WhyNoRdma(facts, needs)});
}

}  // namespace

constinit const Command kDevicesCommand = {
    .name = "devices",
    .arguments = "[DEVICE]",
    .summary = "show this machine's RDMA devices",
    .details =
        "State, link, network device, MTU and GIDs of each port, and the limits that matter to\n"
        "kvd; of DEVICE or --device=NAME alone, if one is named. Needs no server. Exit status 1:\n"
        "there is no device, or not that one; a line says why and what to do.\n",
    .examples =
        "kvcli devices\n"
        "kvcli devices mlx5_0 -w table\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunDevices,
};

}  // namespace kvd::cli
