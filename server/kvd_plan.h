// What kvd is going to do, worked out from its options and checked against the machine before
// anything is started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/admission/access_rules.h"
#include "common/transport/verbs/local_check.h"
#include "server/admin/admin_address.h"
#include "server/kvd_options.h"
#include "server/running_kvd.h"

namespace kvd {

struct KvdPlan {
  KvdOptions options;  // with max_value_bytes settled
  std::shared_ptr<const AccessRules> access;  // what --keys says; null: no such flag
  std::vector<std::string> warnings;
  // What the machine offers: RDMA and hugepages, as `kvcli doctor` judges them.
  std::vector<verbs::CheckResult> checks;
  // Why RDMA is not up, for as long as it is not.
  std::string rdma_note;
  Placement placement;  // on which NUMA node, and on which processors
  // Why --listen cannot be, as far as that is known beforehand, and what to do. Empty: nothing is
  // known against it.
  std::string cannot_listen;
  // With --check: the kvd that serves --shm at present. The plan is for when that has ended, and
  // counts what it then gives back as there.
  std::optional<RunningKvd> running;
  std::optional<AdminAddress> admin;  // where the admin endpoint listens
};

// An error is one line that names flag, value and remedy. ResourceExhausted: this machine has not
// so much memory to give just now; all others stay until somebody changes flags, files or the
// machine. Starts nothing, takes nothing.
absl::StatusOr<KvdPlan> MakeKvdPlan(const KvdOptions& options);

// The plan for people, one "name: value" a line.
std::string DescribePlan(const KvdPlan& plan);

// A value can be at most a quarter of the memory, so that it can be replaced while it is there.
uint64_t LargestValue(uint64_t memory_bytes);

}  // namespace kvd
