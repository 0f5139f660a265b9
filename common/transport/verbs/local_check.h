// Whether this machine is fit for kvd: one table of checks and texts, which kvd's start-up,
// `kvd --check` and `kvcli doctor` share. Pure functions over facts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/transport/verbs/local_check_facts.h"

namespace kvd::verbs {

enum class CheckOutcome { kOk, kWarning, kFailed };

struct CheckResult {
  std::string check;  // "device", "port rxea/1"
  CheckOutcome outcome = CheckOutcome::kOk;
  std::string found;
  std::string remedy;  // empty if all is well
};

enum class HugepageNeed { kNone, kPreferred, kRequired };

// Queues and buffers of a kvd besides its region, generously.
inline constexpr uint64_t kServerBuffersBytes = uint64_t{16} << 20;

// What kvd, or a client, is going to want of this machine.
struct LocalNeeds {
  // RDMA was asked for: what stands in its way has failed, rather than being worth a warning.
  bool rdma_required = false;
  std::string device;          // that has to be used; empty: any
  std::string address;         // to listen on or connect from, maybe with a %zone; empty: any
  uint64_t memory_bytes = 0;   // of the region
  uint64_t buffers_bytes = 0;  // registered besides it
  HugepageNeed hugepages = HugepageNeed::kNone;
  int numa_node = -1;  // that all of it must be of; -1: any
};

// Every check that has something to look at, in the order in which their causes build on each
// other: the first that failed is the one to see to.
std::vector<CheckResult> CheckRdma(const LocalFacts& facts, const LocalNeeds& needs);
// Whether the machine has so much memory; of pages that are in the kernel's pool of hugepages, or
// of others.
CheckResult CheckMemory(const LocalFacts& facts, const LocalNeeds& needs);
CheckResult CheckHugepages(const LocalFacts& facts, const LocalNeeds& needs);
// All of them.
std::vector<CheckResult> CheckLocal(const LocalFacts& facts, const LocalNeeds& needs);

// Why there is no device at all, or not the one that is named, "<found>; <remedy>": nothing can
// be served by RDMA then. Empty: there is one.
std::string WhyNoDevice(const LocalFacts& facts, const LocalNeeds& needs);

// What RDMA lacks on this machine, "<found>; <remedy>" in one line; empty if nothing.
std::string WhyNoRdma(const LocalFacts& facts, const LocalNeeds& needs);

// The same for a log line about a kvd that serves without RDMA. `listening`: --listen was given.
// Where RDMA could be had, says how; where there is no device and nobody asked, only what was
// found. Never empty.
std::string WhyRdmaIsNotUp(const LocalFacts& facts, const LocalNeeds& needs, bool listening);

// The addresses under which RDMA can be reached here, link-local ones left out: "10.77.0.1 (rxea)".
std::vector<std::string> RdmaAddresses(const LocalFacts& facts);

// "ok", "warning", "failed".
std::string_view NameOf(CheckOutcome outcome);

// "<found>; <remedy>", or only what was found.
std::string TextOf(const CheckResult& result);

}  // namespace kvd::verbs
