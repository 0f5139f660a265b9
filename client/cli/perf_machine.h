// What /sys and /proc say of this machine that GETs may be slow by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/perf_facts.h"

namespace kvd::cli {

// `root` stands before every path, for tests. What cannot be read is as if it was not there.

// The NUMA node of a processor; -1: not known.
int NodeOfCpu(unsigned cpu, const std::string& root = "");

// "performance", "powersave"; empty: the processor has no governor, as in most virtual machines.
std::string GovernorOf(unsigned cpu, const std::string& root = "");

// Of the calling thread so far.
OwnProcessor ReadOwnProcessor(const std::string& root = "");
OwnProcessor Between(const OwnProcessor& before, const OwnProcessor& after);

// Percent of the last 10 seconds in which some thread of the machine waited for a processor; -1:
// the kernel does not say (PSI).
double CpuPressurePercent(const std::string& root = "");
// How many threads ran or wanted to, on average over the last minute; -1: not known.
double LoadOfLastMinute(const std::string& root = "");

// Counters of every port of every RDMA device: "mlx5_0/1 out_of_sequence".
using PortCounters = std::map<std::string, uint64_t>;
PortCounters ReadPortCounters(const std::string& root = "");

// Whether a counter of that name counts what a sound network does not have: packets lost, late, out
// of order or sent again.
bool CountsLoss(std::string_view name);

// Those that count loss and have grown.
std::vector<std::pair<std::string, uint64_t>> LossesBetween(const PortCounters& before,
                                                            const PortCounters& after);

// The size of the pages in which a file of that name is mapped, by the text of /proc/PID/smaps;
// transparent hugepages count as 2 MiB where at least half is of them. 0: it is not mapped.
uint64_t MappedPageBytes(std::string_view smaps, std::string_view file_name);

// The whole of a file of /proc or /sys; empty if it cannot be read.
std::string ReadTextFile(const std::string& path);

}  // namespace kvd::cli
