#include "common/transport/verbs/local_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/transport/verbs/local_check_rows.h"

namespace kvd::verbs {

std::vector<CheckResult> CheckRdma(const LocalFacts& facts, const LocalNeeds& needs) {
  CheckResults results;
  if (!CheckDevices(facts, needs, results)) return results;
  CheckDeviceFiles(facts, needs, results);
  CheckPorts(facts, needs, results);
  CheckAddress(facts, needs, results);
  CheckNamespace(facts, results);
  CheckMemlock(facts, needs, results);
  CheckRegionSize(facts, needs, results);
  return results;
}

std::vector<CheckResult> CheckLocal(const LocalFacts& facts, const LocalNeeds& needs) {
  std::vector<CheckResult> results = CheckRdma(facts, needs);
  results.push_back(CheckMemory(facts, needs));
  if (needs.hugepages != HugepageNeed::kNone) results.push_back(CheckHugepages(facts, needs));
  return results;
}

std::string WhyNoDevice(const LocalFacts& facts, const LocalNeeds& needs) {
  LocalNeeds required = needs;
  required.rdma_required = true;
  CheckResults results;
  return CheckDevices(facts, required, results) ? "" : TextOf(results.front());
}

std::string WhyNoRdma(const LocalFacts& facts, const LocalNeeds& needs) {
  LocalNeeds required = needs;
  required.rdma_required = true;
  for (const CheckResult& result : CheckRdma(facts, required)) {
    if (result.outcome == CheckOutcome::kFailed) return TextOf(result);
  }
  return "";
}

std::string WhyRdmaIsNotUp(const LocalFacts& facts, const LocalNeeds& needs, bool listening) {
  LocalNeeds required = needs;
  required.rdma_required = true;
  for (const CheckResult& result : CheckRdma(facts, required)) {
    if (result.outcome != CheckOutcome::kFailed) continue;
    return listening || !facts.kernel_devices.empty() ? TextOf(result) : result.found;
  }
  if (listening) return "this kvd cannot listen on RDMA";
  const std::vector<std::string> addresses = RdmaAddresses(facts);
  return absl::StrCat(
      "not asked for; to serve ",
      addresses.empty() ? facts.listing.devices.front().name : absl::StrJoin(addresses, ", "),
      " too, give --listen=ADDRESS:7711");
}

std::string_view NameOf(CheckOutcome outcome) {
  switch (outcome) {
    case CheckOutcome::kOk:
      return "ok";
    case CheckOutcome::kWarning:
      return "warning";
    case CheckOutcome::kFailed:
      break;
  }
  return "failed";
}

std::string TextOf(const CheckResult& result) {
  return result.remedy.empty() ? result.found : absl::StrCat(result.found, "; ", result.remedy);
}

}  // namespace kvd::verbs
