// Checks that a history of many clients is linearizable: each operation seems to take effect at one
// instant between its invocation and its return. The property is local (Herlihy and Wing 1990), so
// each key is checked by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/linearizability/model.h"
#include "tests/linearizability/operation.h"
#include "tests/linearizability/search.h"

namespace kvd::test {

struct CheckOptions {
  Rules rules;
  // For each key. Tens of thousands are usual for as many operations; what needs more is undecided.
  uint64_t steps_max = 20'000'000;
  size_t reports_max = 5;
};

struct CheckResult {
  Verdict verdict = Verdict::kLinearizable;  // a violation, if there is one, before undecided
  uint64_t keys = 0;
  uint64_t operations = 0;
  uint64_t unknown = 0;  // writes whose outcome is unknown
  uint64_t steps = 0;
  uint64_t violations = 0;           // keys
  uint64_t undecided = 0;            // keys
  std::vector<std::string> reports;  // of the first keys that failed, for people

  bool ok() const { return verdict == Verdict::kLinearizable; }
};

// The order of the operations in `history` does not matter. No key has an item at the beginning.
CheckResult CheckHistory(std::vector<Operation> history, const CheckOptions& options = {});

// A line for each operation, with times from that of the first.
std::string DescribeHistory(const std::vector<Operation>& history);

}  // namespace kvd::test
