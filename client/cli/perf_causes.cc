#include "client/cli/perf_causes.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kvd::cli {
namespace {

// What a design of one READ for a small item allows for items beside their bucket and chains.
constexpr double kReadsPerColdGetMax = 1.25;
constexpr double kOverflowShareMax = 0.25;
constexpr double kRetryShareMax = 0.01;
constexpr double kLocationHitShareMin = 0.9;
constexpr double kWaitShareMax = 0.02;  // of the time, for a processor
constexpr double kWaitUsMax = 10'000;   // what one or two turns of others take, by themselves
constexpr uint64_t kMtuSmall = 1024;
constexpr uint64_t kSmallPage = 4096;
// Above this a GET takes longer than the way there explains.
constexpr double kTimesTheFloor = 2;
constexpr double kSharedMemoryUs = 3;  // for a small item, where there is no way

verbs::CheckResult Cause(std::string name, std::string found, std::string remedy) {
  return {absl::StrCat("cause: ", name), verbs::CheckOutcome::kWarning, std::move(found),
          std::move(remedy)};
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Sums over the kinds of GET that were measured.
uint64_t Sum(const PerfFacts& facts, uint64_t GetFacts::*of) {
  uint64_t sum = 0;
  for (const auto* gets : {&facts.cold, &facts.known, &facts.large, &facts.miss}) {
    if (gets->has_value()) sum += (**gets).*of;
  }
  return sum;
}

}  // namespace

PerfCause JudgeLoss(const PerfFacts& facts) {
  if (facts.losses.empty()) return std::nullopt;
  std::string grown;
  for (const auto& [name, count] : facts.losses) {
    absl::StrAppend(&grown, grown.empty() ? "" : ", ", name, " by ", count);
  }
  return Cause("loss",
               absl::StrCat("packets were lost or sent again while this measured: ", grown,
                            " (hw_counters of the port, before and after)"),
               "see to cables and to PFC or ECN on switches and both hosts; each loss costs a "
               "timeout of the connection");
}

PerfCause JudgeContention(const PerfFacts& facts) {
  const double measured_us = facts.measured_s * 1e6;
  const auto is_much = [measured_us](uint64_t us) {
    return static_cast<double>(us) > std::max(kWaitShareMax * measured_us, kWaitUsMax);
  };
  if (measured_us <= 0) return std::nullopt;
  std::string found;
  const auto add = [&found](const std::string& text) {
    absl::StrAppend(&found, found.empty() ? "" : ", ", text);
  };
  const auto ms = [](uint64_t us) {
    return absl::StrFormat("%.0f ms", static_cast<double>(us) / 1e3);
  };
  if (is_much(facts.server_queued_us)) {
    add(absl::StrCat("kvd's pollers were ready to run and others had their processor for ",
                     ms(facts.server_queued_us), " (poller_queued_us of 'kvcli stat')"));
  } else if (is_much(facts.server_stalled_us)) {
    add(absl::StrCat("kvd's pollers had no processor for ", ms(facts.server_stalled_us),
                     ", though nobody else had it (poller_stalled_us of 'kvcli stat')"));
  }
  if (is_much(facts.own.queued_us)) {
    add(absl::StrCat("this client was ready to run and others had its processor for ",
                     ms(facts.own.queued_us), " (/proc/thread-self/schedstat), it was put off ",
                     facts.own.put_off, " times (nonvoluntary_ctxt_switches)"));
  }
  if (found.empty()) return std::nullopt;
  add(absl::StrFormat("of %.0f ms that this measured", measured_us / 1e3));
  if (facts.load >= 0 && facts.processors != 0) {
    add(absl::StrFormat(
        "with a load of %.1f here on %d processors that this may use (/proc/loadavg, "
        "sched_getaffinity)",
        facts.load, facts.processors));
  }
  if (facts.pressure_percent >= 0) {
    add(absl::StrFormat(
        "%.0f %% of the last 10 s somebody here waited for one (/proc/pressure/cpu)",
        facts.pressure_percent));
  }
  return Cause(
      "contention", found,
      "fewer --pollers than processors, kvd and clients on processors of their own "
      "(--poller_cpus, taskset), no limit of processor time for their containers; 'top -H' "
      "shows who else runs");
}

PerfCause JudgeByRequest(const PerfFacts& facts) {
  const uint64_t by_request = Sum(facts, &GetFacts::by_request);
  if (by_request == 0) return std::nullopt;
  return Cause("GETs by request",
               absl::StrCat(by_request, " of ", Sum(facts, &GetFacts::gets),
                            " GETs were answered by the server instead of read from its memory "
                            "(this client's counters)"),
               "see which keys are written all the time: a GET that meets a write too often asks");
}

PerfCause JudgeRetries(const PerfFacts& facts) {
  const uint64_t gets = Sum(facts, &GetFacts::gets);
  const uint64_t torn = Sum(facts, &GetFacts::torn_reads);
  const uint64_t moved = Sum(facts, &GetFacts::moved_items);
  if (Share(torn + moved, gets) <= kRetryShareMax) return std::nullopt;
  return Cause("retries",
               absl::StrFormat("of %d GETs %d READs were torn and %d items had moved (this "
                               "client's counters): they were written while they were read",
                               gets, torn, moved),
               "spread what is written often over more keys; 'kvcli --stat' shows how many PUTs "
               "there are");
}

PerfCause JudgePages(const PerfFacts& facts) {
  const bool there = facts.page_kind == "4 KiB";
  const bool here = facts.mapped_page_bytes == kSmallPage && facts.page_kind != "4 KiB" &&
                    facts.page_kind.find("transparent") == std::string::npos;
  if (!there && !here) return std::nullopt;
  if (here) {
    return Cause("4 KiB pages",
                 absl::StrCat("this process maps the region in pages of 4 KiB (/proc/self/smaps), "
                              "though kvd has it in pages of ",
                              facts.page_kind, " (page_kind of 'kvcli stat')"),
                 "see whether this is the kvd that you mean, and report this");
  }
  return Cause("4 KiB pages",
               absl::StrCat("the region is of pages of 4 KiB (page_kind of 'kvcli stat')",
                            facts.page_fallback.empty() || facts.page_fallback == "none"
                                ? ""
                                : absl::StrCat(": ", facts.page_fallback),
                            facts.mapped_page_bytes == kSmallPage
                                ? "; this process maps it in such too (/proc/self/smaps)"
                                : ""),
               "reserve hugepages on kvd's machine (sysctl vm.nr_hugepages, kvd-hugepages) and "
               "start it anew; --hugepages=require makes it say what is missing");
}

PerfCause JudgeNode(const PerfFacts& facts) {
  if (facts.cpu_node < 0) return std::nullopt;
  if (facts.device_node >= 0 && facts.device_node != facts.cpu_node) {
    return Cause("other NUMA node",
                 absl::StrFormat("this client ran on NUMA node %d, the device %s is on node %d "
                                 "(its numa_node in /sys, getcpu)",
                                 facts.cpu_node, facts.device, facts.device_node),
                 absl::StrFormat("run clients on the device's node: numactl --cpunodebind=%d "
                                 "--membind=%d",
                                 facts.device_node, facts.device_node));
  }
  int region_node = -1;
  // Of another host's nodes this process knows nothing.
  if (!facts.over_rdma && absl::SimpleAtoi(facts.region_node, &region_node) &&
      region_node != facts.cpu_node) {
    return Cause("other NUMA node",
                 absl::StrFormat("this client ran on NUMA node %d, the region is on node %d "
                                 "(numa_node of 'kvcli stat', getcpu)",
                                 facts.cpu_node, region_node),
                 absl::StrFormat("run clients on the region's node, numactl --cpunodebind=%d, or "
                                 "a kvd on each",
                                 region_node));
  }
  return std::nullopt;
}

PerfCause JudgeMtu(const PerfFacts& facts) {
  if (!facts.over_rdma) return std::nullopt;
  uint64_t mtu = UINT64_MAX;
  for (const uint64_t each : {facts.server_mtu_bytes, facts.device_mtu_bytes}) {
    if (each != 0) mtu = std::min(mtu, each);
  }
  if (mtu > kMtuSmall) return std::nullopt;
  const bool is_servers = facts.server_mtu_bytes == mtu;
  return Cause(absl::StrCat("MTU ", mtu),
               absl::StrCat("the RDMA MTU is ", mtu, " bytes on ",
                            is_servers ? "kvd's port (rdma_mtu_bytes of 'kvcli stat')"
                                       : absl::StrCat(facts.device, " ('kvcli devices')"),
                            ": each READ of more takes several packets"),
               "set the network's MTU to 9000 on hosts and switches (ip link set NETDEV mtu 9000), "
               "for an RDMA MTU of 4096");
}

PerfCause JudgeGovernor(const PerfFacts& facts) {
  if (facts.governor.empty() || facts.governor == "performance") return std::nullopt;
  return Cause("frequency governor",
               absl::StrCat("the processor that this ran on has the governor ", facts.governor,
                            " (scaling_governor in /sys): it may be slow after each pause"),
               "cpupower frequency-set -g performance, on the machines of clients and of kvd");
}

PerfCause JudgeOverflow(const PerfFacts& facts) {
  const double overflow = Share(facts.overflow_headers, facts.buckets);
  const bool many_reads =
      facts.over_rdma && facts.cold.has_value() && facts.cold->reads > kReadsPerColdGetMax;
  if (!many_reads && overflow <= kOverflowShareMax) return std::nullopt;
  std::string found;
  if (many_reads) {
    absl::StrAppendFormat(&found,
                          "a cold GET of a small item takes %.2f READs instead of about 1.1 (this "
                          "client's counters); ",
                          facts.cold->reads);
  }
  absl::StrAppendFormat(&found,
                        "%.0f %% of the buckets overflow and %.0f %% of the items lie within "
                        "their bucket (overflow_headers, local_items of 'kvcli stat')",
                        100 * overflow, 100 * Share(facts.local_items, facts.items));
  // The finding has a "; " of its own, which must not pass for advice.
  std::replace(found.begin(), found.end(), ';', ',');
  return Cause("overflow", found,
               "a larger --bucket_bytes holds longer items, more --memory lets the index grow; a "
               "location cache in the client makes it one READ for what is read again");
}

PerfCause JudgeLocationCache(const PerfFacts& facts) {
  if (!facts.known.has_value() || facts.known->gets == 0) return std::nullopt;
  const double share = Share(facts.known->location_hits, facts.known->gets);
  if (share >= kLocationHitShareMin) return std::nullopt;
  return Cause("location cache",
               absl::StrFormat("only %.0f %% of the GETs found their item where it was remembered "
                               "to lie (this client's counters)",
                               100 * share),
               "items that are written or evicted often move; a cache of locations needs four "
               "entries for each key that is read");
}

PerfCause JudgePolling(const PerfFacts& facts) {
  if (facts.poll_mode != "event") return std::nullopt;
  return Cause("events",
               absl::StrFormat("kvd waits for events (poll_mode of 'kvcli stat'): each request "
                               "wakes a thread first, and took %.1f us",
                               facts.request_p50_us),
               "start kvd with --poll=adaptive, or busy; GETs are not concerned");
}

PerfCause JudgeSoftware(const PerfFacts& facts) {
  if (!facts.device_is_software) return std::nullopt;
  return Cause("software device",
               absl::StrCat(facts.device,
                            " is made in software ('kvcli devices'): the other side's kernel "
                            "answers each READ, with its processor"),
               "Soft-RoCE is for tests; use a device that does RDMA by itself");
}

std::vector<verbs::CheckResult> JudgeAll(const PerfFacts& facts) {
  std::vector<verbs::CheckResult> causes;
  for (PerfCause (*judge)(const PerfFacts&) :
       {JudgeLoss, JudgeContention, JudgeByRequest, JudgeRetries, JudgeNode, JudgePages, JudgeMtu,
        JudgeOverflow, JudgeGovernor, JudgeSoftware, JudgeLocationCache, JudgePolling}) {
    if (PerfCause cause = judge(facts); cause.has_value()) causes.push_back(*std::move(cause));
  }
  if (!causes.empty() || !facts.cold.has_value()) return causes;
  const GetFacts& cold = *facts.cold;
  const bool slow = facts.over_rdma
                        ? cold.floor_us > 0 && cold.p50_us > kTimesTheFloor * cold.floor_us
                        : cold.p50_us > kSharedMemoryUs;
  if (slow) {
    causes.push_back(Cause(
        "not found",
        facts.over_rdma
            ? absl::StrFormat("a GET takes %.1f times what its READs do (%.1f us)",
                              cold.p50_us / cold.floor_us, cold.floor_us)
            : absl::StrFormat("a GET of a small item takes %.1f us, by rule of thumb under %.0f us",
                              cold.p50_us, kSharedMemoryUs),
        "see whether this machine is busy, emulated or saves power"));
  }
  return causes;
}

}  // namespace kvd::cli
