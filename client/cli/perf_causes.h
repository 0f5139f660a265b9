// What makes GETs slow, judged by facts alone: one function a cause, each of which says what was
// found, by which it was found, and what to do. Nothing: it is not that.
#pragma once

#include <optional>
#include <vector>

#include "client/cli/perf_facts.h"
#include "common/transport/verbs/local_check.h"

namespace kvd::cli {

using PerfCause = std::optional<verbs::CheckResult>;

PerfCause JudgeLoss(const PerfFacts& facts);           // packets sent again
PerfCause JudgeContention(const PerfFacts& facts);     // processors that are shared with others
PerfCause JudgeByRequest(const PerfFacts& facts);      // GETs that the server had to answer
PerfCause JudgeRetries(const PerfFacts& facts);        // items written while they are read
PerfCause JudgePages(const PerfFacts& facts);          // 4 KiB pages, there or here
PerfCause JudgeNode(const PerfFacts& facts);           // another NUMA node's device or memory
PerfCause JudgeMtu(const PerfFacts& facts);            // packets of 1 KiB and less
PerfCause JudgeGovernor(const PerfFacts& facts);       // a processor that saves power
PerfCause JudgeOverflow(const PerfFacts& facts);       // more than one READ for a small item
PerfCause JudgeLocationCache(const PerfFacts& facts);  // remembered locations that do not hold
PerfCause JudgePolling(const PerfFacts& facts);        // a server that sleeps between requests
PerfCause JudgeSoftware(const PerfFacts& facts);       // a device that is made in software

// All that apply, the likeliest first. If none does and a GET takes long all the same, one that
// says so.
std::vector<verbs::CheckResult> JudgeAll(const PerfFacts& facts);

}  // namespace kvd::cli
