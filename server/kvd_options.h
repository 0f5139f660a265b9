// What an operator can tell kvd, and how it is read from a command line and from flag files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/units.h"
#include "common/transport/verbs/verbs_target.h"
#include "common/transport/verbs/window_policy.h"
#include "server/placement.h"
#include "server/poller/poller.h"
#include "server/store/region_options.h"

namespace kvd {

// What a write does that finds the memory full.
enum class EvictPolicy {
  kNone,  // it is refused
  kLru,   // what was not used for long goes
};

struct KvdOptions {
  uint64_t memory_bytes = uint64_t{64} << 20;
  bool memory_is_bare_number = false;  // given without a suffix
  std::string shm_path;                // empty: no shared memory
  mode_t shm_mode = 0600;
  std::string listen;  // ADDRESS:PORT for RDMA; empty: none
  std::string device;  // RDMA device; empty: the one with the address
  VerbsConnectMode connect = VerbsConnectMode::kCm;
  int gid_index = -1;  // with kTcp; -1: chosen
  WindowPolicy rdma_windows = WindowPolicy::kPrefer;
  bool insecure = false;   // lets --listen serve whoever reaches the address
  std::string keys_path;   // key file; empty: none
  std::string audit_path;  // empty: no audit log
  uint32_t pollers = 1;
  PollMode poll = PollMode::kAdaptive;
  uint32_t poll_spin_us = 50;
  int numa_node = PlacementWish::kAuto;  // as PlacementWish has it, and so poller_cpus
  std::vector<int> poller_cpus;
  HugepagePolicy hugepages = HugepagePolicy::kPrefer;
  uint64_t max_value_bytes = uint64_t{64} << 20;
  bool max_value_given = false;
  EvictPolicy evict = EvictPolicy::kNone;
  uint32_t max_clients = 1024;
  uint32_t max_clients_per_address = 0;  // 0: no limit, as in the next three
  uint32_t handshakes_per_second = 0;
  uint64_t max_pull_bytes = 0;
  uint32_t idle_timeout_s = 0;
  uint32_t bucket_bytes = kBucketBytesDefault;
  int64_t slow_log_ns = 10'000'000;  // 0: no slow log
  std::string admin;                 // [HOST:]PORT of the admin endpoint; empty: none
  bool check = false;
  bool verbose = false;
  bool help = false;
  bool version = false;
};

// Reads `arguments` (without the program's name) and the flag files that they name. InvalidArgument
// is one line that names the flag, the value found and what it may be; the caller prints it and
// exits with 2.
absl::StatusOr<KvdOptions> ParseKvdOptions(const std::vector<std::string>& arguments);

// The text of --help.
std::string KvdHelp();

const char* NameOf(VerbsConnectMode mode);
const char* NameOf(WindowPolicy policy);
const char* NameOf(PollMode mode);
const char* NameOf(EvictPolicy policy);
const char* NameOf(HugepagePolicy policy);
const char* NameOf(PageKind kind);

}  // namespace kvd
